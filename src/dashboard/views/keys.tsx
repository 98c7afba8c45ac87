/** Keys of the environment, for connecting. A secret key is shown once. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { notify, refreshProjects } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Confirm, Dialog } from "../parts/dialog.tsx"
import { useAction } from "../parts/form.tsx"
import { useCurrentView } from "../parts/current-view.ts"
import { Empty, Failure } from "../parts/load-states.tsx"
import { Table } from "../parts/table.tsx"
import { Badge, Button, Copyable, Panel, Snippet, Time, Title } from "../parts/basics.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"
import { clientSnippet, curlSnippet, publishableKeyOf } from "./connect.ts"

const { keys: own } = texts

const createRoute = "POST /v1/projects/:projectId/environments/:env/keys"
type Created = Response<typeof createRoute>
type Key = Created["key"]

const Rows = ({
  keys,
  revoke
}: {
  readonly keys: ReadonlyArray<Key>
  readonly revoke: (key: Key) => void
}) => (
  <Table
    rows={keys}
    keyOf={({ id }) => id}
    columns={[
      {
        head: own.kind,
        cell: ({ kind }) => (
          <Badge kind={kind === "secret" ? "amber" : "blue"}>{texts.keyKinds[kind]}</Badge>
        )
      },
      {
        head: own.key,
        cell: ({ kind, plain, prefix }) =>
          plain === null ? (
            <code>{prefix}…</code>
          ) : (
            <Copyable text={plain} label={texts.keyKinds[kind]} />
          )
      },
      { head: own.used, cell: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
      { head: own.created, kind: "minor", cell: ({ createdAt }) => <Time at={createdAt} /> }
    ]}
    actions={(key) => (
      <Button kind="danger small" label={`${own.revoke} ${key.prefix}`} onClick={() => revoke(key)}>
        {own.revoke}
      </Button>
    )}
  />
)

const Keys = () => {
  const { env, params, project } = useCurrentView()
  const [created, setCreated] = useState<Created | undefined>(undefined)
  const [revoked, setRevoked] = useState<Key | undefined>(undefined)
  const keys = project.environments.find(({ name }) => name === env)?.keys ?? []
  const { busy, error, run } = useAction(async (kind: Key["kind"]) => {
    const created = await ask(createRoute, { params, body: { kind } })
    await refreshProjects()
    setCreated(created)
  })
  const publishable = publishableKeyOf(keys)
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead}>
        {(["publishable", "secret"] as const).map((kind) => (
          <Button key={kind} disabled={busy} onClick={() => run(kind)}>
            {own.create} {texts.keyKinds[kind]}
          </Button>
        ))}
      </Title>
      {error !== undefined && <Failure error={error} />}
      <section class="panel" aria-label={own.title}>
        {keys.length === 0 ? (
          <Empty title={own.none} text={own.noneText} />
        ) : (
          <Rows keys={keys} revoke={setRevoked} />
        )}
      </section>
      <Panel title={own.connect} lead={own.connectLead}>
        <div class="body stack">
          <Snippet label={texts.players.page} text={clientSnippet(publishable)} />
          <Snippet label={texts.players.terminal} text={curlSnippet(publishable)} />
        </div>
      </Panel>
      {created !== undefined && (
        <Dialog title={own.ready} close={() => setCreated(undefined)}>
          <p>{created.key.kind === "secret" ? own.once : own.onceNot}</p>
          <Copyable text={created.plain} label={texts.keyKinds[created.key.kind]} />
        </Dialog>
      )}
      {revoked !== undefined && (
        <Confirm
          title={own.revokeTitle(revoked.prefix)}
          action={own.revoke}
          name={env === "production" ? revoked.prefix : undefined}
          close={() => setRevoked(undefined)}
          run={async () => {
            const projectId = project.id
            await ask("DELETE /v1/projects/:projectId/keys/:keyId", {
              params: { projectId, keyId: revoked.id }
            })
            await refreshProjects()
            notify(own.revoked)
          }}
        >
          <p>{own.revokeText}</p>
        </Confirm>
      )}
    </div>
  )
}

export const page: ViewEntry = { word: "keys", text: own.title, view: Keys }
