/** Functions of the environment: the live version, its logs, and the rollback. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Confirm } from "../../parts/dialog.tsx"
import { useAction } from "../../parts/form.tsx"
import { useCurrentView } from "../../parts/current-view.ts"
import { useRead } from "../../parts/read.ts"
import { Empty, Failure, Loaded } from "../../parts/load-states.tsx"
import { Button, Snippet, Title } from "../../parts/basics.tsx"
import { Tabs, useTab } from "../../parts/tabs.tsx"
import type { ViewEntry } from "../../parts/view-entry.ts"
import { Database } from "./database.tsx"
import { DeadLetters } from "./dead-letters.tsx"
import { Logs } from "./logs.tsx"
import { Secrets } from "./secrets.tsx"
import { State } from "./state.tsx"
import { Versions } from "./versions.tsx"

const { functions: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/functions"
type Status = Response<typeof route>

const tabs = ["state", "versions", "logs", "failed", "database", "secrets"] as const

/** The switch of Functions, which has endpoints of its own. */
const Switch = ({ refresh, status }: { readonly status: Status; readonly refresh: () => void }) => {
  const { env, params } = useCurrentView()
  const [closing, setClosing] = useState(false)
  const { busy, error, run } = useAction(async () => {
    await ask("POST /v1/projects/:projectId/environments/:env/functions/enable", {
      params,
      body: {}
    })
    refresh()
    notify(own.enabled)
  })
  return (
    <>
      {status.enabled ? (
        <Button onClick={() => setClosing(true)}>{own.disable}</Button>
      ) : (
        <Button kind="primary" disabled={busy} onClick={run}>
          {own.enable}
        </Button>
      )}
      {error !== undefined && <Failure error={error} />}
      {closing && (
        <Confirm
          title={own.disableTitle(texts.environments[env])}
          action={own.disable}
          close={() => setClosing(false)}
          run={async () => {
            await ask("POST /v1/projects/:projectId/environments/:env/functions/disable", {
              params
            })
            refresh()
            notify(own.disabled)
          }}
        >
          <p>{own.disableText}</p>
        </Confirm>
      )}
    </>
  )
}

const Suspension = ({ status: { suspended, suspendedReason } }: { readonly status: Status }) => {
  if (!suspended) return null
  return (
    <p class="notice red">
      {own.reasons[suspendedReason ?? "abuse"]}
      {suspendedReason === "balance" && (
        <>
          {" "}
          <a href="/dashboard/money">{own.toMoney}</a>
        </>
      )}
    </p>
  )
}

/** Whether there is nothing to show but the switch. */
const isUnused = ({ deployed, enabled, secrets }: Status): boolean =>
  !enabled && !deployed && secrets.length === 0

const Content = ({
  chosen,
  refresh,
  status
}: {
  readonly chosen: (typeof tabs)[number]
  readonly status: Status
  readonly refresh: () => void
}) => {
  const { resources } = status
  return (
    <>
      {chosen === "state" && (
        <State
          status={status}
          refresh={refresh}
          actions={<Switch status={status} refresh={refresh} />}
        />
      )}
      {chosen === "versions" && <Versions refreshState={refresh} />}
      {chosen === "logs" && <Logs />}
      {chosen === "failed" && (
        <DeadLetters queues={resources.queues.map(({ binding }) => binding)} />
      )}
      {chosen === "database" && (
        <Database
          names={resources.databases.flatMap(({ binding, bound = true }) =>
            bound ? [binding] : []
          )}
        />
      )}
      {chosen === "secrets" && <Secrets refreshState={refresh} />}
    </>
  )
}

const Functions = () => {
  const { env } = useCurrentView()
  const [chosen, choose] = useTab(tabs)
  const load = useRead(route)
  const { data: status, refresh } = load
  const hasTabs = status !== undefined && !isUnused(status)
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead}>
        {hasTabs && (
          <Tabs label={own.title} names={tabs} texts={own.tabs} chosen={chosen} choose={choose} />
        )}
      </Title>
      <Loaded of={load}>
        {(it) =>
          isUnused(it) ? (
            <section class="panel" aria-label={own.offTitle}>
              <Empty title={own.offTitle} text={own.offText}>
                <Switch status={it} refresh={refresh} />
                <Snippet label={own.deploy} text={own.deployText(env)} />
              </Empty>
            </section>
          ) : (
            <>
              <Suspension status={it} />
              <Content chosen={chosen} status={it} refresh={refresh} />
            </>
          )
        }
      </Loaded>
    </div>
  )
}

export const page: ViewEntry = { word: "functions", text: own.title, view: Functions }
