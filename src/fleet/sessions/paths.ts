import { join } from 'node:path'

/** The fleet's directory in the home. */
export const fleetHome = (home: string): string => join(home, 'fleet')

export const agentsHome = (home: string): string => join(fleetHome(home), 'agents')

/** An agent's files. While this directory exists, the agent's name is in use. */
export const agentDirectory = (home: string, name: string): string => join(agentsHome(home), name)

/** Outlives the agent. */
export const logFile = (home: string, name: string): string => join(fleetHome(home), 'logs', `${name}.log`)

/** Written by the shell around the program. */
export const startedFile = (directory: string): string => join(directory, 'started')
export const endedFile = (directory: string): string => join(directory, 'ended')

/** Read and deleted by the shell around the program. */
export const environmentFile = (directory: string): string => join(directory, 'environment')

/** A FIFO: the program's input. */
export const inputFile = (directory: string): string => join(directory, 'input')

/** A FIFO: the program's output. */
export const outputFile = (directory: string): string => join(directory, 'output')

/** The first process of a session without a terminal. */
export const rootFile = (directory: string): string => join(directory, 'root')

/** Where commands in a sandbox leave their requests. The agent can write anything there. */
export const requestsDirectory = (directory: string): string => join(directory, 'requests')

/** Where those commands find the answers. The agent can't write there. */
export const answersDirectory = (directory: string): string => join(directory, 'answers')

/** Messages that are too long to type. */
export const messagesDirectory = (directory: string): string => join(directory, 'messages')
