/**
 * Output of commands: data on standard output, everything else on standard error, so that pipes carry
 * only data. Colours follow the stream, NO_COLOR and FORCE_COLOR. `--json` prints JSON.
 *
 * Nothing else in the CLI writes to a terminal. Whatever the text, only styles of this file reach it as
 * control sequences; all other control characters are printed as escapes.
 */
import { randomUUID } from "node:crypto"
import { styleText } from "node:util"
import { Console, Effect, Stdio, Stream } from "effect"
import { CliOutput, Flag, GlobalFlag } from "effect/cli"
import type { Failure, LocatedIssue } from "./failures.ts"
import { plainJson, plainLine, plainLines } from "./terminal-text.ts"

/** `--json`, anywhere on the command line. */
export const Json = GlobalFlag.Setting("json")({
  flag: Flag.Boolean("json").pipe(
    Flag.withDescription("Print the result as one JSON value"),
    Flag.withDefault(false)
  )
})

type Style = "red" | "green" | "yellow" | "cyan" | "dim" | "bold"

const escape = "\u001B"

/** Stands for the escape character of a style until the text is printed. Nobody else can write it. */
const styleMark = `<${randomUUID()}>`

/** Styles text if its stream supports colours. */
export const styled =
  (stream: "stdout" | "stderr") =>
  (style: Style, text: string): string =>
    styleText(style, plainLine(text), { stream: process[stream] }).replaceAll(escape, styleMark)

const printable = (line: string): string => plainLine(line).replaceAll(styleMark, escape)

/** Prints lines on standard output. A line break within a line is printed as an escape. */
export const print = (...lines: ReadonlyArray<string>) =>
  Console.log(lines.map(printable).join("\n"))

/** Prints a JSON text on standard output. */
export const printJson = (text: string) => Console.log(plainJson(text))

const out = styled("stdout")
const err = styled("stderr")

/** Prints the result of a command: `json` with `--json`, else the lines of `text`. */
export const printResult = Effect.fnUntraced(function* (
  json: unknown,
  text: ReadonlyArray<string>
) {
  if (yield* Json) return yield* printJson(JSON.stringify(json, null, 2))
  if (text.length > 0) yield* print(...text)
})

/** Prints a message on standard error. */
export const note = (...lines: ReadonlyArray<string>) =>
  Console.error(lines.map(printable).join("\n"))

/** Writes one message of a protocol between programs, a JSON text, as a line on standard output. */
export const writeMessage = Effect.fnUntraced(function* (json: string) {
  const stdio = yield* Stdio.Stdio
  const line = plainLine(json.replace(/[\r\n]+/g, " "))
  yield* Stream.run(Stream.make(`${line}\n`), stdio.stdout({ endOnDone: false }))
})

/** Erases the line of the cursor. */
const eraseLine = `\r${escape}[2K`

/** Shows a line on a terminal that replaces the one before; an empty one removes it. */
export const makeProgress = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  const isShown = (yield* stdio.stderrIsTerminal) && !(yield* Json)
  return (text: string): Effect.Effect<void> =>
    isShown
      ? Effect.ignore(
          Stream.run(
            Stream.make(`${eraseLine}${printable(text)}`),
            stdio.stderr({ endOnDone: false })
          )
        )
      : Effect.void
})

/** Shows a progress message on a terminal while an effect runs. */
export const withProgress = Effect.fnUntraced(function* <A, E, R>(
  what: string,
  effect: Effect.Effect<A, E, R>
) {
  const progress = yield* makeProgress
  return yield* progress(err("dim", `${what} ...`)).pipe(
    Effect.andThen(effect),
    Effect.ensuring(progress(""))
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
    return yield* Console.error(plainJson(JSON.stringify({ error }, null, 2)))
  }
  yield* note(
    ...issueLines("error", file, issues),
    ...`${err("red", "error")}: ${plainLines(message, "  ")}`.split("\n"),
    ...hints.flatMap((hint) => `  ${plainLines(hint, "    ")}`.split("\n"))
  )
})

/** Styles the second column, of states: one state is good. */
export const stateStyle =
  (good: string) =>
  (cell: string, column: number, padded: string): string =>
    column === 1 ? out(cell === good ? "green" : "dim", padded) : padded

/** Formats rows under headings in aligned columns. `style` runs after padding. */
export const table = (
  headings: ReadonlyArray<string>,
  cells: ReadonlyArray<ReadonlyArray<string>>,
  style = (_cell: string, _column: number, padded: string): string => padded
): ReadonlyArray<string> => {
  const rows = cells.map((row) => row.map(plainLine))
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
