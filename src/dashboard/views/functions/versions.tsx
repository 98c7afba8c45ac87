/** Versions of the code: which one is live, what is in each, and the way back. */
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Diff } from "../../parts/diff.tsx"
import { useCurrentView } from "../../parts/current-view.ts"
import { useRead } from "../../parts/read.ts"
import { Empty, Loaded } from "../../parts/load-states.tsx"
import { count, Panel, Snippet } from "../../parts/basics.tsx"
import { VersionTable } from "../../parts/version-table.tsx"

const { functions: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/functions/deployments"
type Deployment = Response<typeof route>["deployments"][number]

const sizeOf = ({ modules }: Deployment): number =>
  modules.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)

/** The modules with their sizes as text, to compare versions. */
const listOf = ({ modules }: Deployment): string =>
  modules
    .map(({ name, sizeBytes }) => `${name}  ${count(sizeBytes)} B`)
    .toSorted()
    .join("\n")

const Comparison = ({ chosen, live }: Readonly<{ chosen: Deployment; live: Deployment }>) => {
  const [before, after] = [listOf(live), listOf(chosen)]
  if (before === after) return <p class="soft small">{own.sameModules}</p>
  return <Diff before={before} after={after} label={own.activateModules} />
}

const List = ({
  deployments,
  refresh
}: {
  readonly deployments: ReadonlyArray<Deployment>
  readonly refresh: () => void
}) => {
  const { params } = useCurrentView()
  const live = deployments.find((deployment) => deployment.live)
  const versions = deployments.map((deployment) => ({
    ...deployment,
    count: deployment.modules.length,
    bytes: sizeOf(deployment),
    ready: true
  }))
  return (
    <VersionTable
      versions={versions}
      countHead={own.modules}
      activate={async ({ version }) => {
        await ask(
          "POST /v1/projects/:projectId/environments/:env/functions/deployments/:version/activate",
          { params: { ...params, version: `${version}` } }
        )
        refresh()
        notify(texts.versions.activated(version))
      }}
      question={(chosen) => (
        <>
          <p>{own.activateText}</p>
          {live !== undefined && <Comparison chosen={chosen} live={live} />}
        </>
      )}
    />
  )
}

export const Versions = ({ refreshState }: { readonly refreshState: () => void }) => {
  const { env } = useCurrentView()
  const load = useRead(route, { query: { limit: 50 } })
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
            <List deployments={deployments} refresh={refresh} />
          )
        }
      </Loaded>
    </Panel>
  )
}
