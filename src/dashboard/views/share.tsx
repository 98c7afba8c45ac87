/** Statistics of shared links: visits, new players and plays, by link and by day. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Field, Form } from "../parts/form.tsx"
import { useRead } from "../parts/read.ts"
import { useCurrentView } from "../parts/current-view.ts"
import { DayBars } from "../parts/plot.tsx"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Copyable, count, Panel, Title } from "../parts/basics.tsx"
import { Table } from "../parts/table.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"

const { share: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/share/stats"
type Stats = Response<typeof route>

const linkRoute = "POST /v1/projects/:projectId/environments/:env/share/links"

const counted = ["visits", "newPlayers", "plays"] as const

const Totals = ({ totals }: { readonly totals: Stats["totals"] }) => (
  <div class="cards">
    {counted.map((name) => (
      <div class="card-figure" key={name}>
        <div class="label">{own.counts[name]}</div>
        <div class="value">{count(totals[name])}</div>
      </div>
    ))}
  </div>
)

const Links = ({ links }: { readonly links: Stats["links"] }) =>
  links.length === 0 ? (
    <Empty title={own.none} text={own.noneText} />
  ) : (
    <Table
      rows={links}
      keyOf={({ id }) => id}
      columns={[
        {
          head: own.link,
          cell: ({ id, kind, label }) => (
            <>
              {label ?? own.kinds[kind]} <code class="soft">{id}</code>
            </>
          )
        },
        ...counted.map((name) => ({
          head: own.counts[name],
          kind: "number" as const,
          cell: (link: Stats["links"][number]) => count(link[name])
        }))
      ]}
    />
  )

const NewLink = () => {
  const { params } = useCurrentView()
  const [made, setMade] = useState<Response<typeof linkRoute> | undefined>(undefined)
  return (
    <Panel title={own.create} lead={own.createLead}>
      <div class="body">
        <Form
          submit={own.create}
          send={async ({ label = "" }) =>
            setMade(await ask(linkRoute, { params, body: { label } }))
          }
        >
          <Field label={own.label} name="label" maxLength={60} required />
        </Form>
        {made !== undefined && (
          <Dialog title={made.link.label} close={() => setMade(undefined)}>
            <Copyable text={made.url} label={own.link} />
            <p class="soft small">{own.query}</p>
            <Copyable text={made.query} label={own.link} />
          </Dialog>
        )}
      </div>
    </Panel>
  )
}

const Share = () => {
  const load = useRead(route)
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead} />
      <Loaded of={load}>
        {({ days, links, totals }) => (
          <>
            <Totals totals={totals} />
            <Panel title={own.days}>
              <div class="body">
                <DayBars
                  label={own.days}
                  days={days.map(({ date, visits }) => ({ date, count: visits }))}
                />
              </div>
            </Panel>
            <Panel title={own.links}>
              <Links links={links} />
            </Panel>
          </>
        )}
      </Loaded>
      <NewLink />
    </div>
  )
}

export const page: ViewEntry = { word: "share", text: own.title, view: Share }
