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
}

/**
 * Wraps a command. The process has no capabilities and cannot gain any, writes no core dump, and dies with
 * the service. `setpriv` sets the death signal after the change of the user, which would clear it.
 */
export const confine = (
  { prlimit, setpriv }: Pick<Programs, "prlimit" | "setpriv">,
  { dataBytes, openFiles, threads, uid }: Confinement,
  command: ReadonlyArray<string>
): readonly [file: string, ...args: ReadonlyArray<string>] => {
  const own =
    uid === undefined
      ? []
      : [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--bounding-set=-all"]
  const processes = uid === undefined ? [] : [`--nproc=${threads}`]
  return [
    prlimit,
    `--data=${dataBytes}`,
    `--nofile=${openFiles}`,
    "--core=0",
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
