/** What is live, and how to go back: the versions of the hosted app. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Confirm } from "../parts/dialog.tsx"
import { useLoad } from "../parts/load.ts"
import { usePlace } from "../parts/place.ts"
import { Empty, Loaded } from "../parts/shown.tsx"
import { Badge, bytes, count, Panel, Snippet, Time, Title } from "../parts/small.tsx"

const { hosting: own } = texts

const listRoute = "GET /v1/projects/:projectId/environments/:env/deployments"
type Deployment = Response<typeof listRoute>["deployments"][number]

const stateRoute = "GET /v1/projects/:projectId/environments/:env/hosting"
type State = Response<typeof stateRoute>

const Addresses = ({ state }: { readonly state: State }) => (
  <Panel title={own.addresses}>
    <dl class="facts body">
      <dt>{own.live}</dt>
      <dd>{state.live === null ? own.nothingLive : own.version(state.live.version)}</dd>
      <dt>{own.urls}</dt>
      <dd>
        {state.urls.length === 0
          ? own.noDomain
          : state.urls.map((url) => (
              <div key={url}>
                <a href={url} target="_blank" rel="noreferrer">
                  {url}
                </a>
              </div>
            ))}
      </dd>
      <dt>{own.storage}</dt>
      <dd>
        {bytes(state.usedBytes)} {texts.overview.ofLimit(bytes(state.limitBytes))}
      </dd>
    </dl>
  </Panel>
)

const Row = ({
  activate,
  deployment
}: {
  readonly deployment: Deployment
  readonly activate: () => void
}) => (
  <tr>
    <td>
      <strong>{deployment.version}</strong>{" "}
      {deployment.live && <Badge kind="green">{own.isLive}</Badge>}
      {deployment.status === "uploading" && <Badge kind="amber">{own.uploading}</Badge>}
      <div class="soft small">{deployment.message}</div>
    </td>
    <td>
      <Time at={deployment.createdAt} />
    </td>
    <td class="number minor">{count(deployment.fileCount)}</td>
    <td class="number minor">{bytes(deployment.totalBytes)}</td>
    <td class="tight">
      <div class="row end">
        {deployment.url !== null && (
          <a class="button small" href={deployment.url} target="_blank" rel="noreferrer">
            {own.open}
          </a>
        )}
        {deployment.status === "ready" && !deployment.live && (
          <button type="button" class="button small" onClick={activate}>
            {own.activate}
          </button>
        )}
      </div>
    </td>
  </tr>
)

const Versions = ({
  refresh,
  versions
}: {
  readonly versions: ReadonlyArray<Deployment>
  readonly refresh: () => void
}) => {
  const { params } = usePlace()
  const [chosen, setChosen] = useState<Deployment | undefined>(undefined)
  return (
    <div class="table-wrap">
      <table>
        <thead>
          <tr>
            <th scope="col">{own.versionHead}</th>
            <th scope="col">{texts.players.created}</th>
            <th scope="col" class="number minor">
              {own.files}
            </th>
            <th scope="col" class="number minor">
              {own.size}
            </th>
            <th scope="col" class="tight">
              <span class="hidden-text">{texts.keys.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {versions.map((deployment) => (
            <Row
              key={deployment.deploymentId}
              deployment={deployment}
              activate={() => setChosen(deployment)}
            />
          ))}
        </tbody>
      </table>
      {chosen !== undefined && (
        <Confirm
          title={own.activateTitle(chosen.version)}
          action={own.activate}
          close={() => setChosen(undefined)}
          run={async () => {
            await ask("POST /v1/projects/:projectId/environments/:env/deployments/:ref/activate", {
              params: { ...params, ref: chosen.deploymentId }
            })
            refresh()
            notify(own.activated(chosen.version))
          }}
        >
          <p>{own.activateText}</p>
        </Confirm>
      )}
    </div>
  )
}

export const Hosting = () => {
  const { env, params, project } = usePlace()
  const state = useLoad(`${project.id}/${env}/hosting`, (signal) =>
    ask(stateRoute, { params, signal })
  )
  const list = useLoad(`${project.id}/${env}/deployments`, (signal) =>
    ask(listRoute, { params, query: { limit: 50 }, signal })
  )
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
              <Versions versions={deployments} refresh={refresh} />
            )
          }
        </Loaded>
      </Panel>
    </div>
  )
}
