/** The course of requests and errors: by minute for an hour, or by hour for a day. */
import type { Response } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { hourName, minuteName } from "../../core/time.ts"
import { Bars } from "../../parts/plot.tsx"
import { count, Panel } from "../../parts/basics.tsx"
import { Tabs, useTab } from "../../parts/tabs.tsx"

const { requests: own } = texts.overview

type Course = Response<"GET /v1/projects/:projectId/environments/:env/overview">["requests"]
type Counts = Course["minutes"]

const spans = ["hour", "day"] as const

const parts = [
  { name: "succeeded", tone: "" },
  { name: "clientErrors", tone: "amber" },
  { name: "serverErrors", tone: "red" }
] as const

/** Counts of the requests answered without an error, with 4xx and with 5xx. */
const partsOf = ({ clientErrors, requests, serverErrors }: Counts[number]) => ({
  succeeded: requests - clientErrors - serverErrors,
  clientErrors,
  serverErrors
})

/** Sums of all counts. */
export const totalOf = (counts: Counts) => ({
  start: "",
  requests: counts.reduce((sum, each) => sum + each.requests, 0),
  clientErrors: counts.reduce((sum, each) => sum + each.clientErrors, 0),
  serverErrors: counts.reduce((sum, each) => sum + each.serverErrors, 0)
})

const sentenceOf = (counts: Counts[number]): string => {
  const values = partsOf(counts)
  return parts.map(({ name }) => `${own[name]} ${count(values[name])}`).join(", ")
}

export const Requests = ({ course }: { readonly course: Course }) => {
  const [span, choose] = useTab(spans, "requests")
  const counts = span === "hour" ? course.minutes : course.hours
  const nameOf = span === "hour" ? minuteName : hourName
  const total = totalOf(counts)
  const sums = partsOf(total)
  const bars = counts.map((each) => ({
    key: each.start,
    title: `${nameOf(each.start)}: ${sentenceOf(each)}`,
    parts: parts.map(({ name, tone }) => ({ tone, value: partsOf(each)[name] }))
  }))
  return (
    <Panel
      title={own.title}
      lead={own.lead}
      actions={
        <Tabs label={own.span} names={spans} texts={own.spans} chosen={span} choose={choose} />
      }
    >
      <div class="body stack">
        <dl class="legend">
          {parts.map(({ name, tone }) => (
            <div key={name}>
              <dt>
                <i class={`swatch ${tone}`} /> {own[name]}
              </dt>
              <dd>{count(sums[name])}</dd>
            </div>
          ))}
        </dl>
        <Bars
          bars={bars}
          label={`${own.title}, ${own.spans[span]}: ${sentenceOf(total)}`}
          from={nameOf(counts[0]?.start ?? "")}
          middle={own.highest[span](Math.max(...counts.map(({ requests }) => requests)))}
          to={own.now}
        />
      </div>
    </Panel>
  )
}
