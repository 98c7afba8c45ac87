/** State of Functions: address, limits, crons, stored data, and the deletion. */
import type { ComponentChildren } from "preact"
import { lazy } from "preact-iso"
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Cancel, Confirm, Dialog } from "../../parts/dialog.tsx"
import { Field, Form } from "../../parts/form.tsx"
import { useCurrentView } from "../../parts/current-view.ts"
import { Badge, bytes, Copyable, count, Panel } from "../../parts/basics.tsx"

const { functions: own } = texts

const NextRun = lazy(() => import("./next-run.tsx"))

type Status = Response<"GET /v1/projects/:projectId/environments/:env/functions">

const StatusBadge = ({ status: { enabled, suspended } }: { readonly status: Status }) => {
  if (suspended) return <Badge kind="red">{own.suspended}</Badge>
  return <Badge kind={enabled ? "green" : ""}>{enabled ? own.on : own.off}</Badge>
}

const LimitsDialog = ({
  close,
  refresh,
  status: { limits }
}: {
  readonly status: Status
  readonly close: () => void
  readonly refresh: () => void
}) => {
  const { params } = useCurrentView()
  return (
    <Dialog title={own.limits} close={close}>
      <Form
        submit={own.save}
        after={<Cancel close={close} />}
        send={async ({ cpuMs = "", subRequests = "" }) => {
          await ask("PUT /v1/projects/:projectId/environments/:env/functions/limits", {
            params,
            body: { cpuMs: Number(cpuMs), subRequests: Number(subRequests) }
          })
          refresh()
          close()
          notify(own.limitsSaved)
        }}
      >
        <Field
          label={own.cpuLabel}
          hint={own.cpuHint(limits.cpuMsMax ?? 30_000)}
          name="cpuMs"
          type="number"
          value={`${limits.cpuMs}`}
          required
        />
        <Field
          label={own.subRequestsLabel}
          hint={own.subRequestsHint}
          name="subRequests"
          type="number"
          value={`${limits.subRequests}`}
          required
        />
      </Form>
    </Dialog>
  )
}

/** What the environment has used, and what follows. */
const Used = ({ usage }: { readonly usage: NonNullable<Status["usage"]> }) => {
  const { cpu, storage } = usage
  return (
    <>
      <dt>{own.cpuMinute}</dt>
      <dd>
        {own.cpuUsed(cpu.usedMs, cpu.maxMs)}{" "}
        {cpu.waitMs > 0 && <Badge kind="red">{own.cpuWait(cpu.waitMs)}</Badge>}
      </dd>
      <dt>{own.storage}</dt>
      <dd>
        {own.storageUsed(
          bytes(storage.bytes),
          storage.maxBytes === 0 ? "" : bytes(storage.maxBytes)
        )}{" "}
        {storage.state !== "free" && <Badge kind="red">{own.storageStates[storage.state]}</Badge>}
      </dd>
    </>
  )
}

const Facts = ({
  actions,
  refresh,
  status
}: {
  readonly status: Status
  readonly refresh: () => void
  readonly actions: ComponentChildren
}) => {
  const [editing, setEditing] = useState(false)
  const { durableObjects, limits, url, usage, version } = status
  return (
    <Panel
      title={own.state}
      actions={
        <>
          <button type="button" class="button" onClick={() => setEditing(true)}>
            {own.changeLimits}
          </button>
          {actions}
        </>
      }
    >
      <dl class="facts body">
        <dt>{own.status}</dt>
        <dd>
          <StatusBadge status={status} />
        </dd>
        <dt>{own.live}</dt>
        <dd>{version === null ? own.nothingLive : own.version(version)}</dd>
        <dt>{own.url}</dt>
        <dd>
          <Copyable text={url} label={own.url} />
        </dd>
        <dt>{own.cpu}</dt>
        <dd>{own.millis(limits.cpuMs)}</dd>
        <dt>{own.subRequests}</dt>
        <dd>{count(limits.subRequests)}</dd>
        {usage !== undefined && usage !== null && <Used usage={usage} />}
        {durableObjects.length > 0 && (
          <>
            <dt>{own.objects}</dt>
            <dd>
              <code>{durableObjects.join(", ")}</code>
            </dd>
          </>
        )}
      </dl>
      {editing && (
        <LimitsDialog status={status} refresh={refresh} close={() => setEditing(false)} />
      )}
    </Panel>
  )
}

/** Crons run while Functions are on and not suspended. */
const Crons = ({ status: { crons, enabled, suspended } }: { readonly status: Status }) => (
  <Panel title={own.crons} lead={own.cronsLead}>
    {crons.length === 0 ? (
      <p class="body soft">{own.noCrons}</p>
    ) : (
      <ul class="timeline">
        {crons.map((cron) => (
          <li key={cron}>
            <div class="row">
              <code>{cron}</code>
              <span class="grow" />
              {enabled && !suspended && <NextRun cron={cron} />}
            </div>
          </li>
        ))}
      </ul>
    )}
  </Panel>
)

const rowsOf = ({ resources }: Status) => [
  ...(["databases", "kv", "files"] as const).flatMap((kind) =>
    resources[kind].map(({ binding, bound = true, sizeBytes }) => ({
      binding,
      bound,
      kind,
      text: bytes(sizeBytes)
    }))
  ),
  ...resources.queues.map(({ binding, messages }) => ({
    binding,
    bound: true,
    kind: "queues" as const,
    text: own.messages(messages)
  }))
]

const Resources = ({ status }: { readonly status: Status }) => {
  const rows = rowsOf(status)
  return (
    <Panel title={own.resources} lead={own.resourcesLead}>
      {rows.length === 0 ? (
        <p class="body soft">{own.noResources}</p>
      ) : (
        <div class="table-wrap" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">{own.binding}</th>
                <th scope="col">{own.kind}</th>
                <th scope="col" class="number">
                  {own.stored}
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ binding, bound, kind, text }) => (
                <tr key={kind + binding}>
                  <td>
                    <code>{binding}</code>
                    {!bound && <div class="soft small">{own.unbound}</div>}
                  </td>
                  <td>{own.kinds[kind]}</td>
                  <td class="number">{text}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}

const Removal = ({ refresh }: { readonly refresh: () => void }) => {
  const { env, params, project } = useCurrentView()
  const [chosen, setChosen] = useState<"code" | "purge" | undefined>(undefined)
  const name = `${project.slug} (${texts.environments[env]})`
  return (
    <Panel title={own.remove} lead={own.removeLead}>
      <div class="body row end">
        <button type="button" class="button danger" onClick={() => setChosen("code")}>
          {own.removeCode}
        </button>
        <button type="button" class="button danger" onClick={() => setChosen("purge")}>
          {own.purge}
        </button>
      </div>
      {chosen !== undefined && (
        <Confirm
          title={chosen === "code" ? own.removeCodeTitle(name) : own.purgeTitle(name)}
          action={chosen === "code" ? own.removeCode : own.purge}
          name={project.slug}
          close={() => setChosen(undefined)}
          run={async () => {
            await ask("DELETE /v1/projects/:projectId/environments/:env/functions", {
              params,
              query: { purge: chosen === "purge" ? "true" : "false" }
            })
            refresh()
            notify(own.removed)
          }}
        >
          <p>{chosen === "code" ? own.removeCodeText : own.purgeText}</p>
        </Confirm>
      )}
    </Panel>
  )
}

export const State = ({
  actions,
  refresh,
  status
}: {
  readonly status: Status
  /** Actions beside the change of limits. */
  readonly actions: ComponentChildren
  readonly refresh: () => void
}) => (
  <>
    <Facts status={status} refresh={refresh} actions={actions} />
    <div class="grid">
      <Crons status={status} />
      <Resources status={status} />
    </div>
    <Removal refresh={refresh} />
  </>
)
