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
import { Badge, Button, bytes, Copyable, count, Facts, Panel } from "../../parts/basics.tsx"
import { Table } from "../../parts/table.tsx"

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
const used = ({ cpu, storage }: NonNullable<Status["usage"]>) =>
  [
    [
      own.cpuMinute,
      <>
        {own.cpuUsed(cpu.usedMs, cpu.maxMs)}{" "}
        {cpu.waitMs > 0 && <Badge kind="red">{own.cpuWait(cpu.waitMs)}</Badge>}
      </>
    ],
    [
      own.storage,
      <>
        {own.storageUsed(
          bytes(storage.bytes),
          storage.maxBytes === 0 ? "" : bytes(storage.maxBytes)
        )}{" "}
        {storage.state !== "free" && <Badge kind="red">{own.storageStates[storage.state]}</Badge>}
      </>
    ]
  ] as const

const Live = ({
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
          <Button onClick={() => setEditing(true)}>{own.changeLimits}</Button>
          {actions}
        </>
      }
    >
      <Facts
        of={[
          [own.status, <StatusBadge status={status} />],
          [own.live, version === null ? own.nothingLive : own.version(version)],
          [own.url, <Copyable text={url} label={own.url} />],
          [own.cpu, own.millis(limits.cpuMs)],
          [own.subRequests, count(limits.subRequests)],
          ...(usage === undefined || usage === null ? [] : used(usage)),
          durableObjects.length > 0 && [own.objects, <code>{durableObjects.join(", ")}</code>]
        ]}
      />
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
  return (
    <Panel title={own.resources} lead={own.resourcesLead}>
      <Table
        rows={rowsOf(status)}
        none={own.noResources}
        keyOf={({ binding, kind }) => kind + binding}
        columns={[
          {
            head: own.binding,
            cell: ({ binding, bound }) => (
              <>
                <code>{binding}</code>
                {!bound && <div class="soft small">{own.unbound}</div>}
              </>
            )
          },
          { head: own.kind, cell: ({ kind }) => own.kinds[kind] },
          { head: own.stored, kind: "number", cell: ({ text }) => text }
        ]}
      />
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
        <Button kind="danger" onClick={() => setChosen("code")}>
          {own.removeCode}
        </Button>
        <Button kind="danger" onClick={() => setChosen("purge")}>
          {own.purge}
        </Button>
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
    <Live status={status} refresh={refresh} actions={actions} />
    <div class="grid">
      <Crons status={status} />
      <Resources status={status} />
    </div>
    <Removal refresh={refresh} />
  </>
)
