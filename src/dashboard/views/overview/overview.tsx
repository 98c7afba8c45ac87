/** Overview of the environment: key figures, and what is not set up yet. */
import type { Response } from "../../core/api.ts"
import { Icon } from "../../parts/icon.tsx"
import { addressOf, useCurrentView } from "../../parts/current-view.ts"
import { Course, DayBars, useSamples } from "../../parts/plot.tsx"
import { livePollMillis, useRead } from "../../parts/read.ts"
import { LiveMark, Loaded } from "../../parts/load-states.tsx"
import { bytes, count, Panel, Snippet, Title } from "../../parts/basics.tsx"
import type { ViewEntry } from "../../parts/view-entry.ts"
import { texts } from "../../core/texts.ts"
import { Requests, totalOf } from "./requests.tsx"
import { clientSnippet, publishableKeyOf } from "../connect.ts"

const { overview: own } = texts

const pollMillis = 5000

type Data = Response<"GET /v1/projects/:projectId/environments/:env/overview">
type Live = Response<"GET /v1/projects/:projectId/environments/:env/realtime">

const Figure = ({
  label,
  note,
  query = "",
  value,
  view
}: {
  readonly label: string
  readonly value: string
  readonly note: string
  readonly view?: string
  /** Selection in the view, with its question mark. */
  readonly query?: string
}) => {
  const { env, project } = useCurrentView()
  const content = (
    <>
      <div class="label">{label}</div>
      <div class="value">{value}</div>
      <div class="note">{note}</div>
    </>
  )
  return view === undefined ? (
    <div class="card-figure">{content}</div>
  ) : (
    <a class="card-figure" href={addressOf(project, env, view) + query}>
      {content}
    </a>
  )
}

/** Most open appeals that are counted. */
const appealsMax = 100

/** Number of appeals that wait for a decision. */
const OpenAppeals = () => {
  const { data } = useRead("GET /v1/projects/:projectId/environments/:env/appeals", {
    pollMillis,
    query: { status: "open", limit: appealsMax }
  })
  const waiting = data?.appeals.length
  const value = waiting === undefined ? "–" : count(waiting)
  return (
    <Figure
      label={own.appeals}
      value={waiting === appealsMax ? `${value}+` : value}
      note={own.appealsNote}
      view="moderation"
    />
  )
}

const Figures = ({ data, live }: { readonly data: Data; readonly live: Live | undefined }) => {
  const waiting = live?.queues.reduce((sum, queue) => sum + queue.waiting, 0)
  const today = data.dailyActives.at(-1)?.count ?? 0
  const { limitBytes, savesBytes } = data.storage
  const { requests, serverErrors } = totalOf(data.requests.minutes)
  return (
    <div class="cards of-overview">
      <Figure label={own.online} value={count(data.online)} note={own.onlineNote} view="live" />
      <Figure
        label={own.rooms}
        value={live === undefined ? "–" : count(live.rooms.length)}
        note={waiting === undefined ? "" : own.waiting(waiting)}
        view="live"
      />
      <Figure
        label={own.today}
        value={count(today)}
        note={own.todayNote}
        view="players"
        query="?filter=active"
      />
      <Figure label={own.errors} value={count(serverErrors)} note={own.errorsNote(requests)} />
      <Figure
        label={own.players}
        value={count(data.players.total)}
        note={own.guests(data.players.guests)}
        view="players"
      />
      <OpenAppeals />
      <Figure label={own.saves} value={bytes(savesBytes)} note={own.ofLimit(bytes(limitBytes))} />
      <Figure
        label={own.config}
        value={`${data.configVersion}`}
        note={own.configNote}
        view="config"
      />
    </div>
  )
}

const Checklist = ({ data }: { readonly data: Data }) => {
  const { env, project } = useCurrentView()
  const isConnected = data.keys.some(
    ({ kind, lastUsedAt }) => kind === "publishable" && lastUsedAt !== null
  )
  const steps = [
    { done: isConnected, text: own.steps.connect, view: "keys" },
    { done: data.players.total > 0, text: own.steps.player, view: "playground" },
    { done: data.configVersion > 1, text: own.steps.config, view: "config" }
  ]
  if (steps.every(({ done }) => done)) return null
  return (
    <Panel title={own.setUp} lead={own.setUpLead}>
      <ol class="checklist">
        {steps.map(({ done, text, view }) => (
          <li key={view} class={done ? "done" : ""}>
            <span class="mark">{done && <Icon name="check" />}</span>
            <span>
              <a href={addressOf(project, env, view)}>{text}</a>
              <span class="hidden-text">{done ? own.done : own.open}</span>
            </span>
          </li>
        ))}
      </ol>
      {!isConnected && (
        <div class="body">
          <Snippet label={own.snippet} text={clientSnippet(publishableKeyOf(data.keys))} />
        </div>
      )}
    </Panel>
  )
}

const Overview = () => {
  const { env, project } = useCurrentView()
  const load = useRead("GET /v1/projects/:projectId/environments/:env/overview", { pollMillis })
  const live = useRead("GET /v1/projects/:projectId/environments/:env/realtime", {
    pollMillis: livePollMillis
  })
  const samples = useSamples(live.data?.connections, live.data, `${project.id}/${env}`)
  return (
    <div class="stack">
      <Title text={own.title}>
        <LiveMark of={live} />
      </Title>
      <Loaded of={load}>
        {(data) => (
          <>
            <Figures data={data} live={live.data} />
            <Requests course={data.requests} />
            <div class="grid">
              <Panel title={own.actives} lead={own.activesLead}>
                <div class="body">
                  <DayBars days={data.dailyActives} label={own.actives} />
                </div>
              </Panel>
              <Panel title={own.connections} lead={own.connectionsLead}>
                <div class="body stack">
                  <strong class="value">{count(live.data?.connections ?? 0)}</strong>
                  <Course values={samples} label={own.connections} />
                </div>
              </Panel>
            </div>
            <Checklist data={data} />
          </>
        )}
      </Loaded>
    </div>
  )
}

export const page: ViewEntry = { word: "overview", text: own.title, view: Overview }
