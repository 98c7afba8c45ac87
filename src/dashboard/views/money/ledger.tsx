/** The entries of the ledger, newest first, page by page. */
import { ask, type Response } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { cents } from "../../parts/amounts.ts"
import { useLoad } from "../../parts/load.ts"
import { usePages } from "../../parts/pages.tsx"
import { Empty, Loaded } from "../../parts/load-states.tsx"
import { Panel, Time } from "../../parts/basics.tsx"
import { Table } from "../../parts/table.tsx"

const { money: own } = texts

const route = "GET /v1/money/prepaid/ledger"
type Page = Response<typeof route>

const pageSize = 20

const Entries = ({ entries }: { readonly entries: Page["entries"] }) => (
  <Table
    rows={entries}
    keyOf={({ id }) => id}
    columns={[
      { head: own.when, cell: ({ createdAt }) => <Time at={createdAt} /> },
      {
        head: own.entry,
        cell: ({ description, kind }) => (
          <>
            {own.kinds[kind]}
            <div class="soft small">{description}</div>
          </>
        )
      },
      { head: own.accountHead, kind: "minor", cell: ({ account }) => own.accounts[account] },
      { head: own.change, kind: "number", cell: ({ amount }) => cents(amount) },
      { head: own.after, kind: "number minor", cell: ({ balanceAfter }) => cents(balanceAfter) }
    ]}
  />
)

const Pages = ({ first }: { readonly first: Page }) => {
  const { more, pages } = usePages(
    first,
    ({ nextCursor }) => nextCursor,
    (cursor) => ask(route, { query: { cursor, limit: pageSize } })
  )
  return (
    <>
      <Entries entries={pages.flatMap(({ entries }) => entries)} />
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
