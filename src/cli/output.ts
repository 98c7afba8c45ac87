/**
 * Output of commands: data on standard output, everything else on standard error, so that pipes carry
 * only data. Colours follow the stream, NO_COLOR and FORCE_COLOR. `--json` prints JSON.
 */
import { styleText } from "node:util"
import { Console, Effect, Stdio, Stream } from "effect"
import { CliOutput, Flag, GlobalFlag } from "effect/cli"
import type { Failure, LocatedIssue } from "./failures.ts"

/** `--json`, anywhere on the command line. */
export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print the result as one JSON value"),
    Flag.withDefault(false)
  )
})

type Style = "red" | "green" | "yellow" | "cyan" | "dim" | "bold"

/** Styles text if its stream supports colours. */
export const styled =
  (stream: "stdout" | "stderr") =>
  (style: Style, text: string): string =>
    styleText(style, text, { stream: process[stream] })

const out = styled("stdout")
const err = styled("stderr")

/** Prints the result of a command: `json` with `--json`, else the lines of `text`. */
export const printResult = Effect.fnUntraced(function* (
  json: unknown,
  text: ReadonlyArray<string>
) {
  if (yield* Json) return yield* Console.log(JSON.stringify(json, null, 2))
  if (text.length > 0) yield* Console.log(text.join("\n"))
})

/** Prints a message on standard error. */
export const note = (...lines: ReadonlyArray<string>) => Console.error(lines.join("\n"))

/** Shows a progress message on a terminal while an effect runs. */
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

/** Prints warnings of a config file. With `--json` they are part of the result instead. */
export const warn = Effect.fnUntraced(function* (
  file: string,
  issues: ReadonlyArray<LocatedIssue>
) {
  if (issues.length === 0 || (yield* Json)) return
  yield* note(...issueLines("warning", file, issues))
})

/** Prints a failure on standard error, as text or JSON. */
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

/** Formats rows under headings in aligned columns. `style` runs after padding. */
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
