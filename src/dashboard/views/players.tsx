/** Players of the environment: a part of them, by search, in an order. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { useLoad } from "../parts/load.ts"
import { usePages } from "../parts/pages.tsx"
import { addressOf, useCurrentView, useQueryValue } from "../parts/current-view.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Badge, Button, Snippet, Time, Title } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"
import { Choice } from "../parts/form.tsx"
import { Tabs, useTab } from "../parts/tabs.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"
import { clientSnippet, curlSnippet, publishableKeyOf } from "./connect.ts"
import { Player } from "./player.tsx"

const { players: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/players"
type Page = Response<typeof route>
type Listed = Page["players"][number]

const pageSize = 50

/**
 * Interval at which an environment without players is read again, so that the first one appears by
 * itself.
 */
const waitMillis = 3000

const NoPlayers = () => {
  const { env, project } = useCurrentView()
  const keys = project.environments.find(({ name }) => name === env)?.keys ?? []
  const key = publishableKeyOf(keys)
  return (
    <Empty title={own.none} text={own.noneText}>
      <Snippet label={own.page} text={clientSnippet(key)} />
      <Snippet label={own.terminal} text={curlSnippet(key)} />
      <p role="status" class="small">
        {own.waiting}
      </p>
      <a class="button primary" href={addressOf(project, env, "playground")}>
        {own.playground}
      </a>
    </Empty>
  )
}

const Rows = ({ list }: { readonly list: ReadonlyArray<Listed> }) => {
  const { env, project } = useCurrentView()
  return (
    <Table
      rows={list}
      keyOf={({ id }) => id}
      columns={[
        {
          head: own.name,
          cell: ({ displayName, id }) => (
            <a class="name" href={addressOf(project, env, "players", id)}>
              {displayName}
            </a>
          )
        },
        {
          head: own.kind,
          kind: "minor",
          cell: ({ identities, isGuest }) =>
            isGuest ? own.guest : identities.map(({ provider }) => provider).join(", ")
        },
        {
          head: own.status,
          cell: ({ banned }) => (
            <Badge kind={banned ? "red" : "green"}>{banned ? own.banned : own.active}</Badge>
          )
        },
        { head: own.seen, cell: ({ lastSeenAt }) => <Time at={lastSeenAt} /> },
        { head: own.created, kind: "minor", cell: ({ createdAt }) => <Time at={createdAt} /> }
      ]}
    />
  )
}

const filters = ["all", "active", "guests", "accounts", "banned"] as const
const orders = ["newest", "oldest", "name"] as const

/** What the address says about the list. */
interface Selection {
  readonly q: string
  readonly filter: (typeof filters)[number]
  readonly sort: (typeof orders)[number]
}

const queryOf = ({ filter, q, sort }: Selection) => ({
  q,
  filter: filter === "all" ? undefined : filter,
  sort,
  limit: pageSize
})

/** The first page, and further ones on demand. */
const List = ({ first, selection }: { readonly first: Page; readonly selection: Selection }) => {
  const { params } = useCurrentView()
  const { more, pages } = usePages(
    first,
    ({ nextCursor }) => nextCursor,
    (cursor) => ask(route, { params, query: { ...queryOf(selection), cursor } })
  )
  return (
    <>
      <Rows list={pages.flatMap(({ players }) => players)} />
      {more}
    </>
  )
}

const Nobody = ({
  selection: { filter, q },
  showAll
}: {
  readonly selection: Selection
  readonly showAll: () => void
}) => {
  if (q === "" && filter === "all") return <NoPlayers />
  return (
    <Empty
      title={q === "" ? own.noneShown : own.noMatch}
      text={q === "" ? own.noneShownText : own.noMatchText}
    >
      <Button onClick={showAll}>{own.showAll}</Button>
    </Empty>
  )
}

/** The choice of a part of the players and of their order. */
const Head = ({
  chooseFilter,
  chooseSort,
  selection: { filter, q, sort },
  total
}: {
  readonly selection: Selection
  readonly chooseFilter: (filter: Selection["filter"]) => void
  readonly chooseSort: (sort: Selection["sort"]) => void
  readonly total: number | null
}) => (
  <header>
    <Tabs
      label={own.filter}
      names={filters}
      texts={own.filters}
      chosen={filter}
      choose={chooseFilter}
    />
    <span role="status" class="soft">
      {total !== null && own.count(total)}
    </span>
    <span class="grow" />
    {/* The matches of a search by name are in the order of names. */}
    {q === "" && (
      <Choice
        label={own.order}
        hideLabel
        value={sort}
        options={orders.map((order) => [order, own.orders[order]])}
        onChoose={(chosen) => chooseSort(orders.find((order) => order === chosen) ?? "newest")}
      />
    )}
  </header>
)

const AllPlayers = () => {
  const { env, params, project } = useCurrentView()
  const [q, setTyped] = useQueryValue("q")
  const [filter, chooseFilter] = useTab(filters, "filter")
  const [sort, chooseSort] = useTab(orders, "sort")
  const [isEmpty, setEmpty] = useState(false)
  const selection = { q, filter, sort }
  const key = `${q}&${filter}&${sort}`
  const load = useLoad(
    `${project.id}/${env}/players?${key}`,
    async (signal) => {
      const page = await ask(route, { params, query: queryOf(selection), signal })
      setEmpty(page.players.length === 0)
      return page
    },
    isEmpty ? waitMillis : undefined
  )
  return (
    <div class="stack">
      <Title text={own.title}>
        <input
          class="input search"
          type="search"
          aria-label={own.search}
          placeholder={own.search}
          maxLength={200}
          value={q}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </Title>
      <section class="panel" aria-label={own.title}>
        <Head
          selection={selection}
          chooseFilter={chooseFilter}
          chooseSort={chooseSort}
          total={load.data?.total ?? null}
        />
        <Loaded of={load}>
          {(first) =>
            first.players.length > 0 ? (
              <List key={key} first={first} selection={selection} />
            ) : (
              <Nobody
                selection={selection}
                showAll={() => (q === "" ? chooseFilter("all") : setTyped(""))}
              />
            )
          }
        </Loaded>
      </section>
    </div>
  )
}

/** The list, or the player of the address. */
const Players = () => {
  const { item } = useCurrentView()
  return item === undefined ? <AllPlayers /> : <Player id={item} />
}

export const page: ViewEntry = { word: "players", text: own.title, view: Players }
