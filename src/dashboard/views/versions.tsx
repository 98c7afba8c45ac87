/** The history of the config: who pushed what, the difference to what is in force, and the way back. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Diff } from "../parts/diff.tsx"
import { useAction } from "../parts/form.tsx"
import { useRead } from "../parts/read.ts"
import { useCurrentView } from "../parts/current-view.ts"
import { Empty, Failure, Loaded } from "../parts/load-states.tsx"
import { Badge, Button, Panel, Time } from "../parts/basics.tsx"

const { config: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/config/versions"

interface Opened {
  readonly version: number
  readonly text: string
}

type Version = Response<typeof route>["versions"][number]

const List = ({
  compare,
  versions
}: {
  readonly versions: ReadonlyArray<Version>
  readonly compare: (version: number) => void
}) => (
  <ul class="timeline">
    {versions.map(({ configVersion, createdAt, pushedBy }, index) => (
      <li key={configVersion}>
        <div class="row">
          <strong>{own.version(configVersion)}</strong>
          {index === 0 && <Badge kind="green">{own.inForce}</Badge>}
          <Time at={createdAt} />
          <code class="soft small">{pushedBy}</code>
          <span class="grow" />
          <Button
            kind="small"
            label={`${own.compare} ${configVersion}`}
            onClick={() => compare(configVersion)}
          >
            {own.compare}
          </Button>
        </div>
      </li>
    ))}
  </ul>
)

export const Versions = ({
  offer,
  text
}: {
  readonly text: string
  readonly offer: (text: string) => void
}) => {
  const { params } = useCurrentView()
  const [opened, setOpened] = useState<Opened | undefined>(undefined)
  const load = useRead(route, { query: { limit: 50 }, basis: text })
  const { error, run } = useAction(async (version: number) => {
    const document = await ask(
      "GET /v1/projects/:projectId/environments/:env/config/versions/:version",
      { params: { ...params, version: `${version}` } }
    )
    setOpened({ version, text: `${JSON.stringify(document, null, 2)}\n` })
  })
  return (
    <Panel title={own.tabs.history} lead={own.historyLead}>
      {error !== undefined && <Failure error={error} />}
      <Loaded of={load}>
        {({ versions }) =>
          versions.length === 0 ? (
            <Empty title={own.noHistory} text={own.noHistoryText} />
          ) : (
            <List versions={versions} compare={(version) => void run(version)} />
          )
        }
      </Loaded>
      {opened !== undefined && (
        <Dialog title={own.compareTitle(opened.version)} wide close={() => setOpened(undefined)}>
          {opened.text === text ? (
            <p>{own.same}</p>
          ) : (
            <>
              <Diff before={text} after={opened.text} label={own.difference} />
              <div class="row end">
                <Button
                  kind="primary"
                  onClick={() => {
                    setOpened(undefined)
                    offer(opened.text)
                  }}
                >
                  {own.restore}
                </Button>
              </div>
            </>
          )}
        </Dialog>
      )}
    </Panel>
  )
}
