/** The entries of the ledger, newest first, page by page. */
import { ask, type Response } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { cents } from "../../parts/amounts.ts"
import { useLoad } from "../../parts/load.ts"
import { usePages } from "../../parts/pages.tsx"
import { Empty, Loaded } from "../../parts/load-states.tsx"
import { Panel, Time } from "../../parts/basics.tsx"

const { money: own } = texts

const route = "GET /v1/money/prepaid/ledger"
type Page = Response<typeof route>

const pageSize = 20

const Table = ({ entries }: { readonly entries: Page["entries"] }) => (
  <div class="table-wrap" tabIndex={0}>
    <table>
      <thead>
        <tr>
          <th scope="col">{own.when}</th>
          <th scope="col">{own.entry}</th>
          <th scope="col" class="minor">
            {own.accountHead}
          </th>
          <th scope="col" class="number">
            {own.change}
          </th>
          <th scope="col" class="number minor">
            {own.after}
          </th>
        </tr>
      </thead>
      <tbody>
        {entries.map(({ account, amount, balanceAfter, createdAt, description, id, kind }) => (
          <tr key={id}>
            <td>
              <Time at={createdAt} />
            </td>
            <td>
              {own.kinds[kind]}
              <div class="soft small">{description}</div>
            </td>
            <td class="minor">{own.accounts[account]}</td>
            <td class="number">{cents(amount)}</td>
            <td class="number minor">{cents(balanceAfter)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
)

const Pages = ({ first }: { readonly first: Page }) => {
  const { more, pages } = usePages(
    first,
    ({ nextCursor }) => nextCursor,
    (cursor) => ask(route, { query: { cursor, limit: pageSize } })
  )
  return (
    <>
      <Table entries={pages.flatMap(({ entries }) => entries)} />
      {more}
    </>
  )
}

export const Ledger = () => {
  const load = useLoad("ledger", (signal) => ask(route, { query: { limit: pageSize }, signal }))
  return (
    <Panel title={own.ledger} lead={own.ledgerLead}>
      <Loaded of={load}>
        {(first) =>
          first.entries.length === 0 ? (
            <Empty title={own.noEntries} text={own.noEntriesText} />
          ) : (
            <Pages key={first.entries[0]?.id} first={first} />
          )
        }
      </Loaded>
    </Panel>
  )
}
