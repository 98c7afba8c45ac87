/**
 * Failures of commands: a message for people, a code for scripts, and an exit code for CI (`exitCodes`,
 * also in `svc --help`).
 */
import { Data, Runtime } from "effect"

/** Exit codes of `svc`. */
export const exitCodes = {
  /** Success; with `config diff --exit-code`: no difference. */
  ok: 0,
  /** Negative result: the config is invalid, differs, or has changed; the service refused what was asked. */
  no: 1,
  /** Usage error: the command line, the linked folder, a file or the request made of them is invalid. */
  usage: 2,
  /** Refused or missing key. */
  refused: 3,
  /** Unreachable or busy service, or an unexpected response: the same command may succeed later. */
  unreachable: 4
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A problem of a config file: its JSON path, and its position, counted from 1. */
export interface LocatedIssue {
  readonly path: string
  readonly message: string
  readonly line: number
  readonly column: number
}

/** A failed command. It changed nothing. */
export class Failure extends Data.TaggedError("Failure")<{
  readonly exitCode: ExitCode
  /** The error code of the service, or one of the CLI. */
  readonly code: string
  readonly message: string
  /** Remedies, one line each. */
  readonly hints?: ReadonlyArray<string>
  readonly file?: string
  readonly issues?: ReadonlyArray<LocatedIssue>
}> {
  override readonly [Runtime.errorExitCode] = this.exitCode
}

/** Returns a failure for an invalid command line or file. */
export const usageFailure = (message: string, ...hints: ReadonlyArray<string>): Failure =>
  new Failure({ exitCode: exitCodes.usage, code: "usage", message, hints })

/** Ends the process with an exit code after the result is printed. */
export class Exit extends Data.TaggedError("Exit")<{ readonly exitCode: ExitCode }> {
  override readonly [Runtime.errorExitCode] = this.exitCode
}
