/** Sign-in providers of players, each with the address to enter there and its credentials. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Cancel, Confirm, Dialog } from "../parts/dialog.tsx"
import { Field, Form, TextField, type Values } from "../parts/form.tsx"
import { useRead } from "../parts/read.ts"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Badge, Button, Copyable, Facts, Panel, Title } from "../parts/basics.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"

const { signin: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/auth/providers/:provider"
type State = Response<typeof route>

const providers = ["google", "discord", "apple", "x"] as const

const AppleFields = () => (
  <>
    <Field label={own.servicesId} name="servicesId" autocomplete="off" required />
    <Field label={own.teamId} name="teamId" autocomplete="off" maxLength={10} required />
    <Field label={own.keyId} name="keyId" autocomplete="off" maxLength={10} required />
    <TextField label={own.privateKey} name="privateKey" required />
  </>
)

const ClientFields = ({ clientId }: { readonly clientId: string | null }) => (
  <>
    <Field
      label={own.clientId}
      name="clientId"
      autocomplete="off"
      value={clientId ?? ""}
      required
    />
    <Field
      label={own.clientSecret}
      name="clientSecret"
      type="password"
      autocomplete="off"
      required
    />
  </>
)

/** Stores the credentials, which the service encrypts. */
const useStore = (provider: State["provider"]) => {
  const { params } = useCurrentView()
  return async (values: Values): Promise<void> => {
    const of = (name: string) => values[name] ?? ""
    if (provider === "apple") {
      await ask("PUT /v1/projects/:projectId/environments/:env/auth/providers/apple", {
        params,
        body: {
          servicesId: of("servicesId"),
          teamId: of("teamId"),
          keyId: of("keyId"),
          privateKey: of("privateKey")
        }
      })
    } else {
      await ask("PUT /v1/projects/:projectId/environments/:env/auth/providers/:provider", {
        params: { ...params, provider },
        body: { clientId: of("clientId"), clientSecret: of("clientSecret") }
      })
    }
  }
}

const Credentials = ({
  close,
  refresh,
  state
}: {
  readonly state: State
  readonly close: () => void
  readonly refresh: () => void
}) => {
  const store = useStore(state.provider)
  return (
    <Dialog title={own.credentialsOf(own.names[state.provider])} close={close}>
      <p>{own.callbackText}</p>
      <Copyable text={state.callbackUrl} label={own.callback} />
      <Form
        submit={own.store}
        after={<Cancel close={close} />}
        send={async (values) => {
          await store(values)
          refresh()
          close()
          notify(own.stored)
        }}
      >
        {state.provider === "apple" ? <AppleFields /> : <ClientFields clientId={state.clientId} />}
      </Form>
    </Dialog>
  )
}

const Status = ({ state }: { readonly state: State }) => {
  if (state.configured && state.enabled) return <Badge kind="green">{own.works}</Badge>
  if (state.enabled) return <Badge kind="amber">{own.needsCredentials}</Badge>
  return <Badge>{own.off}</Badge>
}

const Provider = ({ name }: { readonly name: (typeof providers)[number] }) => {
  const { env, params, project } = useCurrentView()
  const [open, setOpen] = useState<"edit" | "remove" | undefined>(undefined)
  const load = useRead(route, { params: { provider: name } })
  const close = () => setOpen(undefined)
  return (
    <Panel
      title={own.names[name]}
      actions={load.data !== undefined && <Status state={load.data} />}
    >
      <Loaded of={load}>
        {(state) => (
          <div class="body stack">
            <Facts
              bare
              of={[
                [own.callback, <Copyable text={state.callbackUrl} label={own.callback} />],
                [own.clientId, state.clientId ?? <span class="soft">{own.notSet}</span>]
              ]}
            />
            {!state.enabled && (
              <p class="soft small">
                {own.turnOn(`auth.providers.${name}.enabled`)}{" "}
                <a href={addressOf(project, env, "config")}>{texts.config.title}</a>
              </p>
            )}
            <div class="row end">
              {state.configured && (
                <Button kind="danger" onClick={() => setOpen("remove")}>
                  {own.remove}
                </Button>
              )}
              <Button onClick={() => setOpen("edit")}>
                {state.configured ? own.replace : own.enter}
              </Button>
            </div>
            {open === "edit" && <Credentials state={state} close={close} refresh={load.refresh} />}
            {open === "remove" && (
              <Confirm
                title={own.removeTitle(own.names[name])}
                action={own.remove}
                close={close}
                run={async () => {
                  await ask(
                    "DELETE /v1/projects/:projectId/environments/:env/auth/providers/:provider",
                    { params: { ...params, provider: name } }
                  )
                  load.refresh()
                }}
              >
                <p>{own.removeText}</p>
              </Confirm>
            )}
          </div>
        )}
      </Loaded>
    </Panel>
  )
}

const Signin = () => (
  <div class="stack">
    <Title text={own.title} lead={own.lead} />
    <div class="grid">
      {providers.map((name) => (
        <Provider key={name} name={name} />
      ))}
    </div>
  </div>
)

export const page: ViewEntry = { word: "signin", text: own.title, view: Signin }
