/** Versions of the code: which one is live, what is in each, and the way back. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Confirm } from "../../parts/dialog.tsx"
import { Diff } from "../../parts/diff.tsx"
import { useLoad } from "../../parts/load.ts"
import { usePlace } from "../../parts/place.ts"
import { Empty, Loaded } from "../../parts/shown.tsx"
import { Badge, bytes, count, Panel, Snippet, Time } from "../../parts/small.tsx"

const { functions: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/functions/deployments"
type Version = Response<typeof route>["deployments"][number]

const sizeOf = ({ modules }: Version): number =>
  modules.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)

/** The modules with their sizes as text, to compare versions. */
const listOf = ({ modules }: Version): string =>
  modules
    .map(({ name, sizeBytes }) => `${name}  ${count(sizeBytes)} B`)
    .toSorted()
    .join("\n")

const Row = ({
  activate,
  version
}: {
  readonly version: Version
  readonly activate: () => void
}) => (
  <tr>
    <td>
      <strong>{version.version}</strong> {version.live && <Badge kind="green">{own.live}</Badge>}
      <div class="soft small">{version.message}</div>
    </td>
    <td>
      <Time at={version.createdAt} />
    </td>
    <td class="number minor">{count(version.modules.length)}</td>
    <td class="number minor">{bytes(sizeOf(version))}</td>
    <td class="tight">
      {!version.live && (
        <button
          type="button"
          class="button small"
          aria-label={own.activateTitle(version.version)}
          onClick={activate}
        >
          {own.activate}
        </button>
      )}
    </td>
  </tr>
)

const Comparison = ({ chosen, live }: { readonly chosen: Version; readonly live: Version }) => {
  const [before, after] = [listOf(live), listOf(chosen)]
  if (before === after) return <p class="soft small">{own.sameModules}</p>
  return <Diff before={before} after={after} label={own.activateModules} />
}

const List = ({
  refresh,
  versions
}: {
  readonly versions: ReadonlyArray<Version>
  readonly refresh: () => void
}) => {
  const { params } = usePlace()
  const [chosen, setChosen] = useState<Version | undefined>(undefined)
  const live = versions.find((version) => version.live)
  return (
    <div class="table-wrap">
      <table>
        <thead>
          <tr>
            <th scope="col">{texts.hosting.versionHead}</th>
            <th scope="col">{texts.players.created}</th>
            <th scope="col" class="number minor">
              {own.modules}
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
          {versions.map((version) => (
            <Row key={version.version} version={version} activate={() => setChosen(version)} />
          ))}
        </tbody>
      </table>
      {chosen !== undefined && (
        <Confirm
          title={own.activateTitle(chosen.version)}
          action={own.activate}
          close={() => setChosen(undefined)}
          run={async () => {
            await ask(
              "POST /v1/projects/:projectId/environments/:env/functions/deployments/:version/activate",
              { params: { ...params, version: `${chosen.version}` } }
            )
            refresh()
            notify(own.activated(chosen.version))
          }}
        >
          <p>{own.activateText}</p>
          {live !== undefined && <Comparison chosen={chosen} live={live} />}
        </Confirm>
      )}
    </div>
  )
}

export const Versions = ({ refreshState }: { readonly refreshState: () => void }) => {
  const { env, params, project } = usePlace()
  const load = useLoad(`${project.id}/${env}/function-versions`, (signal) =>
    ask(route, { params, query: { limit: 50 }, signal })
  )
  const refresh = () => {
    load.refresh()
    refreshState()
  }
  return (
    <Panel title={own.versions} lead={own.versionsLead}>
      <Loaded of={load}>
        {({ deployments }) =>
          deployments.length === 0 ? (
            <Empty title={own.noVersions} text={own.noVersionsText}>
              <Snippet label={own.deploy} text={own.deployText(env)} />
            </Empty>
          ) : (
            <List versions={deployments} refresh={refresh} />
          )
        }
      </Loaded>
    </Panel>
  )
}
