/** Where Node tells of each process that it starts, and Coppice of each that it lets its launcher start. */
export const processChannels = ['child_process', 'coppice.launch'] as const
