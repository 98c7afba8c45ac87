/** Versions of the hosted app: the live one, and the rollback. */
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { useCurrentView } from "../parts/current-view.ts"
import { useRead } from "../parts/read.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { bytes, Facts, Panel, Snippet, Title } from "../parts/basics.tsx"
import { VersionTable } from "../parts/version-table.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"

const { hosting: own } = texts

const listRoute = "GET /v1/projects/:projectId/environments/:env/deployments"
type Deployment = Response<typeof listRoute>["deployments"][number]

const stateRoute = "GET /v1/projects/:projectId/environments/:env/hosting"
type State = Response<typeof stateRoute>

const Addresses = ({ state }: { readonly state: State }) => (
  <Panel title={own.addresses}>
    <Facts
      of={[
        [own.live, state.live === null ? own.nothingLive : own.version(state.live.version)],
        [
          own.urls,
          state.urls.length === 0
            ? own.noDomain
            : state.urls.map((url) => (
                <div key={url}>
                  <a href={url} target="_blank" rel="noreferrer">
                    {url}
                  </a>
                </div>
              ))
        ],
        [
          own.storage,
          `${bytes(state.usedBytes)} ${texts.overview.ofLimit(bytes(state.limitBytes))}`
        ]
      ]}
    />
  </Panel>
)

const Versions = ({
  deployments,
  refresh
}: {
  readonly deployments: ReadonlyArray<Deployment>
  readonly refresh: () => void
}) => {
  const { params } = useCurrentView()
  const versions = deployments.map((deployment) => ({
    ...deployment,
    count: deployment.fileCount,
    bytes: deployment.totalBytes,
    ready: deployment.status === "ready"
  }))
  return (
    <VersionTable
      versions={versions}
      countHead={own.files}
      activate={async ({ deploymentId, version }) => {
        await ask("POST /v1/projects/:projectId/environments/:env/deployments/:ref/activate", {
          params: { ...params, ref: deploymentId }
        })
        refresh()
        notify(texts.versions.activated(version))
      }}
      question={() => <p>{own.activateText}</p>}
      actionsOf={({ url }) =>
        url !== null && (
          <a class="button small" href={url} target="_blank" rel="noreferrer">
            {own.open}
          </a>
        )
      }
    />
  )
}

const Hosting = () => {
  const { env } = useCurrentView()
  const state = useRead(stateRoute)
  const list = useRead(listRoute, { query: { limit: 50 } })
  const refresh = () => {
    state.refresh()
    list.refresh()
  }
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead} />
      <Loaded of={state}>{(it) => <Addresses state={it} />}</Loaded>
      <Panel title={own.versions}>
        <Loaded of={list}>
          {({ deployments }) =>
            deployments.length === 0 ? (
              <Empty title={own.none} text={own.noneText}>
                <Snippet label={own.deploy} text={`npx svc deploy dist --env ${env}`} />
              </Empty>
            ) : (
              <Versions deployments={deployments} refresh={refresh} />
            )
          }
        </Loaded>
      </Panel>
    </div>
  )
}

export const page: ViewEntry = { word: "hosting", text: own.title, view: Hosting }
