/**
 * What a command prints: data on standard output, everything else on standard error, so that pipes
 * carry data only. Colours follow the stream, NO_COLOR and FORCE_COLOR; `--json` prints for machines.
 */
import { styleText } from "node:util"
import { Console, Effect, Stdio, Stream } from "effect"
import { CliOutput, Flag, GlobalFlag } from "effect/cli"
import type { Failure, LocatedIssue } from "./failures.ts"

/** `--json`, anywhere on the command line. */
export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON value for machines"),
    Flag.withDefault(false)
  )
})

type Style = "red" | "green" | "yellow" | "cyan" | "dim" | "bold"

/** A text in a colour, if the stream that it goes to shows colours. */
export const styled =
  (stream: "stdout" | "stderr") =>
  (style: Style, text: string): string =>
    styleText(style, text, { stream: process[stream] })

const out = styled("stdout")
const err = styled("stderr")

/** The result of a command: `json` with `--json`, else the lines of `text`. */
export const printResult = Effect.fnUntraced(function* (
  json: unknown,
  text: ReadonlyArray<string>
) {
  if (yield* Json) return yield* Console.log(JSON.stringify(json, null, 2))
  if (text.length > 0) yield* Console.log(text.join("\n"))
})

/** Something to know beside the result. */
export const note = (...lines: ReadonlyArray<string>) => Console.error(lines.join("\n"))

/** Shows what takes a while, as long as it does and only to a terminal. */
export const withProgress = Effect.fnUntraced(function* <A, E, R>(
  what: string,
  effect: Effect.Effect<A, E, R>
) {
  const stdio = yield* Stdio.Stdio
  if (!(yield* stdio.stderrIsTerminal)) return yield* effect
  const print = (text: string) => Effect.ignore(Stream.run(Stream.make(text), stdio.stderr()))
  return yield* print(err("dim", `${what} ...`)).pipe(
    Effect.andThen(effect),
    Effect.ensuring(print("\r\u001B[2K"))
  )
})

/** `svc.config.json:12:7  error  features.voice: needs features.realtimeChannels`. */
const issueLines = (
  kind: "error" | "warning",
  file: string,
  issues: ReadonlyArray<LocatedIssue>
): ReadonlyArray<string> =>
  issues.map(({ column, line, message, path }) => {
    const word = err(kind === "error" ? "red" : "yellow", kind)
    return `${file}:${line}:${column}  ${word}  ${path === "" ? "" : `${path}: `}${message}`
  })

/** What a file says in vain; with `--json` it is part of the result. */
export const warn = Effect.fnUntraced(function* (
  file: string,
  issues: ReadonlyArray<LocatedIssue>
) {
  if (issues.length === 0 || (yield* Json)) return
  yield* note(...issueLines("warning", file, issues))
})

/** A failure on standard error, as text or as JSON. */
export const report = Effect.fnUntraced(function* (failure: Failure, json: boolean) {
  const { code, file = "", hints = [], issues = [], message } = failure
  if (json) {
    const error = { code, message, ...(issues.length > 0 ? { file, issues } : {}) }
    return yield* note(JSON.stringify({ error }, null, 2))
  }
  yield* note(
    ...issueLines("error", file, issues),
    `${err("red", "error")}: ${message}`,
    ...hints.map((hint) => `  ${hint}`)
  )
})

/** Rows under headings, the columns aligned; a cell may be styled once it is padded. */
export const table = (
  headings: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  style: (cell: string, column: number, padded: string) => string
): ReadonlyArray<string> => {
  const widths = headings.map((heading, column) =>
    Math.max(...[heading, ...rows.map((row) => row[column] ?? "")].map(CliOutput.displayWidth))
  )
  const pad = (cell: string, column: number) =>
    cell + " ".repeat((widths[column] ?? 0) - CliOutput.displayWidth(cell))
  return [
    out("dim", headings.map(pad).join("  ").trimEnd()),
    ...rows.map((row) =>
      row
        .map((cell, column) => style(cell, column, pad(cell, column)))
        .join("  ")
        .trimEnd()
    )
  ]
}
