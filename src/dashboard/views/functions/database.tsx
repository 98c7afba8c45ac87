/** One statement on a database of the live version, and its result as a table. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { Choice, Form, TextField } from "../../parts/form.tsx"
import { useCurrentView } from "../../parts/current-view.ts"
import { Empty } from "../../parts/load-states.tsx"
import { Panel } from "../../parts/basics.tsx"

const { functions: own } = texts

const route = "POST /v1/projects/:projectId/environments/:env/functions/db/:binding/query"
type Result = Response<typeof route>
type Value = Result["rows"][number][number]

const Cell = ({ value }: { readonly value: Value | undefined }) => {
  if (value === null || value === undefined) return <span class="soft">{own.null}</span>
  if (typeof value === "string" || typeof value === "number") return <code>{value}</code>
  return <span class="soft">{own.blob(value.length)}</span>
}

const summaryOf = ({
  columns,
  lastInsertId,
  rows,
  rowsAffected,
  truncated = false
}: Result): string =>
  [
    ...(columns.length > 0 ? [truncated ? own.firstRows(rows.length) : own.rows(rows.length)] : []),
    ...(columns.length === 0 || rowsAffected > 0 ? [own.affected(rowsAffected)] : []),
    ...(lastInsertId === null ? [] : [own.lastId(lastInsertId)])
  ].join(", ")

const Table = ({ result }: { readonly result: Result }) => (
  <Panel title={own.result} lead={summaryOf(result)}>
    {result.columns.length > 0 && (
      <div class="table-wrap results" tabIndex={0} role="region" aria-label={own.resultRows}>
        <table>
          <thead>
            <tr>
              {result.columns.map((name, index) => (
                <th scope="col" key={index}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {result.rows.map((row, index) => (
              <tr key={index}>
                {result.columns.map((_, column) => (
                  <td key={column} class={typeof row[column] === "number" ? "number" : ""}>
                    <Cell value={row[column]} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Panel>
)

/** The tables of the database: the statement that teaches the first look. */
const firstStatement =
  "select name, sql from sqlite_schema where type = 'table' and substr(name, 1, 1) <> '_'"

export const Database = ({ names }: { readonly names: ReadonlyArray<string> }) => {
  const { env, params } = useCurrentView()
  const [chosen, setChosen] = useState(names[0] ?? "")
  const [result, setResult] = useState<Result | undefined>(undefined)
  if (names.length === 0) {
    return (
      <section class="panel" aria-label={own.noDatabase}>
        <Empty title={own.noDatabase} text={own.noDatabaseText} />
      </section>
    )
  }
  return (
    <>
      {env === "production" && <p class="notice red">{own.productionQuery}</p>}
      <Panel title={own.database} lead={own.databaseLead}>
        <div class="body">
          <Form
            submit={own.run}
            send={async ({ sql = "" }) => {
              setResult(undefined)
              setResult(await ask(route, { params: { ...params, binding: chosen }, body: { sql } }))
            }}
          >
            <Choice
              label={own.databaseName}
              value={chosen}
              options={names.map((name) => [name, name])}
              onChoose={setChosen}
            />
            <TextField
              label={own.sql}
              name="sql"
              mono
              spellcheck={false}
              defaultValue={firstStatement}
              required
            />
          </Form>
        </div>
      </Panel>
      {result !== undefined && <Table result={result} />}
    </>
  )
}
