/** Tables of rows, by a list of columns. */
import type { ComponentChildren } from "preact"
import { texts } from "../core/texts.ts"

export interface Column<Row> {
  readonly head: ComponentChildren
  readonly cell: (row: Row) => ComponentChildren
  /** How the column looks; a narrow screen hides a minor one. */
  readonly kind?: "number" | "minor" | "number minor" | "tight"
}

/** Shows rows; without any, a sentence instead. */
export const Table = <Row,>({
  actions,
  columns: given,
  foot,
  keyOf,
  none,
  rows
}: {
  readonly rows: ReadonlyArray<Row>
  readonly keyOf: (row: Row) => string | number
  readonly columns: ReadonlyArray<Column<Row>>
  /** The last column, of buttons, whose head only a screen reader needs. */
  readonly actions?: (row: Row) => ComponentChildren
  readonly none?: string
  readonly foot?: ComponentChildren
}) => {
  if (rows.length === 0 && none !== undefined) return <p class="body soft">{none}</p>
  const head = <span class="hidden-text">{texts.actions}</span>
  const columns = actions === undefined ? given : [...given, { head, kind: "tight", cell: actions }]
  return (
    <div class="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(({ head, kind }, index) => (
              <th scope="col" key={index} class={kind}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ cell, kind }, index) => (
                <td key={index} class={kind}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {foot}
      </table>
    </div>
  )
}
