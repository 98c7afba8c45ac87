/**
 * How a command fails: a message for people, a code for scripts, and an exit code for CI
 * (`exitCodes`, also in `svc --help`).
 */
import { Data, Runtime } from "effect"

/** What the exit code of `svc` says. */
export const exitCodes = {
  /** Done; for `config diff --exit-code`, no difference. */
  ok: 0,
  /** No: the config is not valid, differs, or changed meanwhile. */
  no: 1,
  /** The command line, the linked folder or a file is not what the command takes. */
  usage: 2,
  /** The service refuses the key, or there is none. */
  refused: 3,
  /** The service does not answer, or not as it should. */
  unreachable: 4
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A problem of a config file: its JSON path, and where in the file that stands, from 1. */
export interface LocatedIssue {
  readonly path: string
  readonly message: string
  readonly line: number
  readonly column: number
}

/** A command could not do what it was asked; nothing is half done. */
export class Failure extends Data.TaggedError("Failure")<{
  readonly exitCode: ExitCode
  /** A code of spec section 7 where the service said it, or one of the CLI's own. */
  readonly code: string
  readonly message: string
  /** What to do about it, a line each. */
  readonly hints?: ReadonlyArray<string>
  readonly file?: string
  readonly issues?: ReadonlyArray<LocatedIssue>
}> {
  override readonly [Runtime.errorExitCode] = this.exitCode
}

/** The command line or a file is wrong. */
export const usageFailure = (message: string, ...hints: ReadonlyArray<string>): Failure =>
  new Failure({ exitCode: exitCodes.usage, code: "usage", message, hints })

/** The answer is printed already: only the exit code is left to say. */
export class Exit extends Data.TaggedError("Exit")<{ readonly exitCode: ExitCode }> {
  override readonly [Runtime.errorExitCode] = this.exitCode
}
