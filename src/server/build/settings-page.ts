/** Prints `docs/operations/settings.md` from the tables of the settings. */
import { sections } from "../platform/settings/settings.ts"
import { type Setting, settingsIn } from "../platform/settings/table.ts"

type Row = readonly [variable: string, initial: string, meaning: string]

const quoted = (text: string): string => (text === "" ? "" : `\`${text}\``)

const rowOf = ({ default: initial = "", meaning, shown, variable }: Setting): Row => [
  quoted(variable),
  shown ?? quoted(initial),
  meaning
]

/** A table whose columns are as wide as their longest cells, as the formatter wants it. */
const tableOf = (rows: ReadonlyArray<Row>): string => {
  const [titles, ...body]: ReadonlyArray<Row> = [["variable", "default", "meaning"], ...rows]
  const widths = [0, 1, 2].map((column) =>
    Math.max(...[titles, ...body].map((row) => row?.[column]?.length ?? 0))
  )
  const line = (row: ReadonlyArray<string> = []) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`
  const rule = line(widths.map((width) => "-".repeat(width)))
  return [line(titles), rule, ...body.map(line)].join("")
}

const head = `# Settings

Environment variables configure a process. All have defaults for a laptop, except where production needs a value of its
own. A wrong value stops the start with a message that names the variable. An empty variable counts as absent. A game's
own behaviour is in its [config](../guides/config.md) instead.
`

const foot = `Other variables of the OpenTelemetry SDK work too, see [observability](observability.md#traces).
`

export const settingsPageText = (): string =>
  [
    head,
    ...Object.entries(sections).flatMap(([title, tables]) => [
      `## ${title}\n`,
      tableOf(settingsIn<(typeof tables)[number]>(tables).map(rowOf))
    ]),
    foot
  ].join("\n")
