/** Features as switches. Each edits the same document as the editor, and shows the difference first. */
import type { Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { useRead } from "../parts/read.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Badge, Panel } from "../parts/basics.tsx"

const { config: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/features"
type Feature = Response<typeof route>["features"][number]

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The document with a value at a path of names. */
const withValue = (document: unknown, path: ReadonlyArray<string>, value: boolean): unknown => {
  const [name, ...rest] = path
  if (name === undefined) return value
  const members = isObject(document) ? document : {}
  return { ...members, [name]: withValue(members[name], rest, value) }
}

const changed = (text: string, path: string, value: boolean): string =>
  `${JSON.stringify(withValue(JSON.parse(text), path.split("."), value), null, 2)}\n`

const Switch = ({
  feature,
  offer,
  text
}: {
  readonly feature: Feature
  readonly text: string
  readonly offer: (text: string) => void
}) => {
  const { env, project } = useCurrentView()
  const { configPath, description, enabled, offered, source, title } = feature
  return (
    <li>
      <label class="switch">
        <input
          type="checkbox"
          role="switch"
          checked={enabled}
          disabled={!offered || source !== "config"}
          onClick={(event) => {
            event.preventDefault()
            if (source === "config") offer(changed(text, configPath, !enabled))
          }}
        />
        <strong>{title}</strong>
        <Badge kind={enabled ? "green" : ""}>{enabled ? own.on : own.off}</Badge>
        {!offered && <Badge kind="amber">{own.notOffered}</Badge>}
      </label>
      <p>{description}</p>
      <p class="soft small">
        {source === "endpoint" ? (
          <>
            {own.byEndpoint}{" "}
            <a href={addressOf(project, env, "functions")}>{texts.functions.title}</a>
          </>
        ) : (
          <code>{configPath}</code>
        )}
      </p>
    </li>
  )
}

export const Features = ({
  offer,
  text
}: {
  readonly text: string
  readonly offer: (text: string) => void
}) => {
  // What is on depends on the document.
  const load = useRead(route, { basis: text })
  return (
    <Panel title={own.tabs.features} lead={own.featuresLead}>
      <Loaded of={load}>
        {({ features }) => (
          <ul class="timeline">
            {features.map((feature) => (
              <Switch key={feature.key} feature={feature} text={text} offer={offer} />
            ))}
          </ul>
        )}
      </Loaded>
    </Panel>
  )
}
