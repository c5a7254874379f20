import type { ProcessRow } from './process-row.ts'

/** Lines of `ps -axo pid=,ppid=,pgid=,stat=,lstart=,comm=`; lstart is five words: `Sat Mar  1 09:05:07 2025`. */
export const parsePsTable = (text: string): readonly ProcessRow[] =>
  text.split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+((?:\S+\s+){4}\S+)\s+/.exec(line)
    const [before = '', pid, parentPid, processGroup, state, started] = match ?? []
    if (state === undefined || started === undefined) return []
    const command = line.slice(before.length)
    return [
      {
        identity: { pid: Number(pid), startTime: started.replaceAll(/\s+/g, ' ') },
        command,
        parentPid: Number(parentPid),
        processGroup: Number(processGroup),
        session: 0,
        zombie: state.startsWith('Z'),
        stopped: state.startsWith('T'),
      },
    ]
  })
