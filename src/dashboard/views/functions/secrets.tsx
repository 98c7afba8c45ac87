/** Secrets of functions by name. Values go in and never come back. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { notify } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Confirm } from "../../parts/dialog.tsx"
import { Field, Form } from "../../parts/form.tsx"
import { useCurrentView } from "../../parts/current-view.ts"
import { useRead } from "../../parts/read.ts"
import { Empty, Loaded } from "../../parts/load-states.tsx"
import { Button, Panel, Time } from "../../parts/basics.tsx"
import { Table } from "../../parts/table.tsx"

const { functions: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/functions/secrets"
type Secret = Response<typeof route>["secrets"][number]

const itemRoute = "/v1/projects/:projectId/environments/:env/functions/secrets/:name"

const List = ({
  refresh,
  secrets
}: {
  readonly secrets: ReadonlyArray<Secret>
  readonly refresh: () => void
}) => {
  const { params } = useCurrentView()
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  return (
    <>
      <Table
        rows={secrets}
        keyOf={({ name }) => name}
        columns={[
          { head: own.secretName, cell: ({ name }) => <code>{name}</code> },
          { head: own.updated, cell: ({ updatedAt }) => <Time at={updatedAt} /> }
        ]}
        actions={({ name }) => (
          <Button
            kind="danger small"
            label={own.deleteSecretTitle(name)}
            onClick={() => setChosen(name)}
          >
            {own.deleteSecret}
          </Button>
        )}
      />
      {chosen !== undefined && (
        <Confirm
          title={own.deleteSecretTitle(chosen)}
          action={own.deleteSecret}
          close={() => setChosen(undefined)}
          run={async () => {
            await ask(`DELETE ${itemRoute}`, { params: { ...params, name: chosen } })
            refresh()
            notify(own.secretDeleted(chosen))
          }}
        >
          <p>{own.deleteSecretText}</p>
        </Confirm>
      )}
    </>
  )
}

const NewSecret = ({ refresh }: { readonly refresh: () => void }) => {
  const { params } = useCurrentView()
  // A new key replaces the fields, so no value stays in the page.
  const [round, setRound] = useState(0)
  return (
    <Panel title={own.setSecret} lead={own.setSecretLead}>
      <div class="body" key={round}>
        <Form
          submit={own.set}
          send={async ({ name = "", value = "" }) => {
            await ask(`PUT ${itemRoute}`, { params: { ...params, name }, body: { value } })
            refresh()
            setRound(round + 1)
            notify(own.secretSet(name))
          }}
        >
          <Field
            label={own.secretName}
            hint={own.secretNameHint}
            name="name"
            pattern="[A-Z][A-Z0-9_]*"
            maxLength={64}
            autocomplete="off"
            required
          />
          <Field
            label={own.secretValue}
            name="value"
            type="password"
            autocomplete="new-password"
            required
          />
        </Form>
      </div>
    </Panel>
  )
}

export const Secrets = ({ refreshState }: { readonly refreshState: () => void }) => {
  const load = useRead(route)
  const refresh = () => {
    load.refresh()
    refreshState()
  }
  return (
    <>
      <Panel title={own.secrets} lead={own.secretsLead}>
        <Loaded of={load}>
          {({ secrets }) =>
            secrets.length === 0 ? (
              <Empty title={own.noSecrets} text={own.noSecretsText} />
            ) : (
              <List secrets={secrets} refresh={refresh} />
            )
          }
        </Loaded>
      </Panel>
      <NewSecret refresh={refresh} />
    </>
  )
}
