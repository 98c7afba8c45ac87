/** Players of the environment, by search, newest first. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { useLoad } from "../parts/load.ts"
import { usePages } from "../parts/pages.tsx"
import { addressOf, useCurrentView, useQueryValue } from "../parts/current-view.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Badge, Snippet, Time, Title } from "../parts/basics.tsx"
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
    <div class="table-wrap" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">{own.name}</th>
            <th scope="col" class="minor">
              {own.kind}
            </th>
            <th scope="col">{own.status}</th>
            <th scope="col">{own.seen}</th>
            <th scope="col" class="minor">
              {own.created}
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map(({ banned, createdAt, displayName, id, identities, isGuest, lastSeenAt }) => (
            <tr key={id}>
              <td>
                <a class="name" href={addressOf(project, env, "players", id)}>
                  {displayName}
                </a>
              </td>
              <td class="minor">
                {isGuest ? own.guest : identities.map(({ provider }) => provider).join(", ")}
              </td>
              <td>
                {banned ? (
                  <Badge kind="red">{own.banned}</Badge>
                ) : (
                  <Badge kind="green">{own.active}</Badge>
                )}
              </td>
              <td>
                <Time at={lastSeenAt} />
              </td>
              <td class="minor">
                <Time at={createdAt} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The first page, and further ones on demand. */
const List = ({ first, typed }: { readonly first: Page; readonly typed: string }) => {
  const { params } = useCurrentView()
  const { more, pages } = usePages(
    first,
    ({ nextCursor }) => nextCursor,
    (cursor) => ask(route, { params, query: { q: typed, limit: pageSize, cursor } })
  )
  return (
    <>
      <Rows list={pages.flatMap(({ players }) => players)} />
      {more}
    </>
  )
}

const AllPlayers = () => {
  const { env, params, project } = useCurrentView()
  const [typed, setTyped] = useQueryValue("q")
  const [isEmpty, setEmpty] = useState(false)
  const load = useLoad(
    `${project.id}/${env}/players?${typed}`,
    async (signal) => {
      const query = { q: typed, limit: pageSize }
      const page = await ask(route, { params, query, signal })
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
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </Title>
      <section class="panel" aria-label={own.title}>
        <Loaded of={load}>
          {(first) =>
            first.players.length > 0 ? (
              <List key={typed} first={first} typed={typed} />
            ) : typed === "" ? (
              <NoPlayers />
            ) : (
              <Empty title={own.noMatch} text={own.noMatchText}>
                <button type="button" class="button" onClick={() => setTyped("")}>
                  {own.showAll}
                </button>
              </Empty>
            )
          }
        </Loaded>
      </section>
    </div>
  )
}

/** The list, or the player of the address. */
export const Players = () => {
  const { item } = useCurrentView()
  return item === undefined ? <AllPlayers /> : <Player id={item} />
}
