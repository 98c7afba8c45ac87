/** Audit log of the project, with filters that are in the address. */
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { Choice } from "../parts/form.tsx"
import { usePages } from "../parts/pages.tsx"
import { useRead } from "../parts/read.ts"
import { useCurrentView, useQueryValue } from "../parts/current-view.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Title } from "../parts/basics.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"
import { Entries } from "./entries.tsx"

const { audit: own } = texts

const route = "GET /v1/projects/:projectId/audit"
type Page = Response<typeof route>
type Query = Readonly<Record<string, string | number | undefined>>

const pageSize = 50

const More = ({ first, query }: { readonly first: Page; readonly query: Query }) => {
  const { params } = useCurrentView()
  const { more, pages } = usePages(
    first,
    ({ nextBefore }) => nextBefore,
    (before) => ask(route, { params, query: { ...query, before } })
  )
  return (
    <>
      <Entries entries={pages.flatMap(({ entries }) => entries)} />
      {more}
    </>
  )
}

/** Actions that the log is often searched for. */
const actions = [
  "appeal.resolve",
  "config.push",
  "deployment.activate",
  "functions.activate",
  "functions.deploy",
  "functions.query",
  "key.create",
  "key.revoke",
  "player.ban",
  "player.delete",
  "player.export",
  "player.unban",
  "project.rename",
  "provider.put"
]

const Audit = () => {
  const { env } = useCurrentView()
  const [action, setAction] = useQueryValue("action")
  const [scope, setScope] = useQueryValue("scope")
  const query: Query = {
    action,
    limit: pageSize,
    ...(scope === "all" ? {} : { env })
  }
  const load = useRead(route, { query })
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead}>
        <Choice
          label={own.action}
          hideLabel
          value={action}
          options={[["", own.allActions], ...actions.map((it) => [it, it] as const)]}
          onChoose={setAction}
        />
        <Choice
          label={own.scope}
          hideLabel
          value={scope}
          options={[
            ["", own.thisEnvironment],
            ["all", own.wholeProject]
          ]}
          onChoose={setScope}
        />
      </Title>
      <section class="panel" aria-label={own.title}>
        <Loaded of={load}>
          {(first) =>
            first.entries.length === 0 ? (
              <Empty title={own.none} text={own.noneText} />
            ) : (
              <More key={JSON.stringify(query)} first={first} query={query} />
            )
          }
        </Loaded>
      </section>
    </div>
  )
}

export const page: ViewEntry = { word: "audit", text: own.title, view: Audit }
