import { join } from 'node:path'

/** What the fleet keeps in the home. */
export const fleetHome = (home: string): string => join(home, 'fleet')

export const agentsHome = (home: string): string => join(fleetHome(home), 'agents')

/** The files of one agent while it lives; its name is free again when this is gone. */
export const agentDirectory = (home: string, name: string): string => join(agentsHome(home), name)

/** Kept after the agent, under its name. */
export const logFile = (home: string, name: string): string => join(fleetHome(home), 'logs', `${name}.log`)

/** Written by the shell around the program. */
export const startedFile = (directory: string): string => join(directory, 'started')
export const endedFile = (directory: string): string => join(directory, 'ended')

/** Read by the shell around the program, and deleted. */
export const environmentFile = (directory: string): string => join(directory, 'environment')

/** A FIFO: what is written there is the program's input. */
export const inputFile = (directory: string): string => join(directory, 'input')

/** A FIFO: what the program prints. */
export const outputFile = (directory: string): string => join(directory, 'output')

/** The first process of a session without a terminal. */
export const rootFile = (directory: string): string => join(directory, 'root')

/** Where commands in a sandbox leave what they want done. The agent may write anything there. */
export const requestsDirectory = (directory: string): string => join(directory, 'requests')

/** Where they find the answers. The agent can't write there. */
export const answersDirectory = (directory: string): string => join(directory, 'answers')

/** Messages that are too long to be typed. */
export const messagesDirectory = (directory: string): string => join(directory, 'messages')
