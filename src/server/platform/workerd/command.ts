/** The command line that confines a process. Pure. */
import type { Programs } from "./programs.ts"

/** Limits of a process, independent of what it does. */
export interface Confinement {
  /** User and group of the process; undefined: those of the service. */
  readonly uid: number | undefined
  /** Bytes of data, after which an allocation fails inside the process. */
  readonly dataBytes: number
  readonly openFiles: number
  readonly threads: number
  /** Bytes of the largest file; a write beyond it ends the process. 0 means no limit. */
  readonly fileBytes: number
}

/** Runs after the service when both want the CPU, which then answers in time. */
const niceness = 5

/**
 * Wraps a command. The process has a low priority and no capabilities, cannot gain any, writes no core
 * dump, and dies with the service. `setpriv` sets the death signal after the change of the user, which
 * would clear it.
 */
export const confine = (
  { nice, prlimit, setpriv }: Pick<Programs, "nice" | "prlimit" | "setpriv">,
  { dataBytes, fileBytes, openFiles, threads, uid }: Confinement,
  command: ReadonlyArray<string>
): readonly [file: string, ...args: ReadonlyArray<string>] => {
  const own =
    uid === undefined
      ? []
      : [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--bounding-set=-all"]
  const processes = uid === undefined ? [] : [`--nproc=${threads}`]
  const files = fileBytes === 0 ? [] : [`--fsize=${fileBytes}`]
  return [
    nice,
    `--adjustment=${niceness}`,
    prlimit,
    `--data=${dataBytes}`,
    `--nofile=${openFiles}`,
    "--core=0",
    ...files,
    ...processes,
    "--",
    setpriv,
    ...own,
    "--inh-caps=-all",
    "--no-new-privs",
    "--pdeathsig=KILL",
    "--",
    ...command
  ]
}
