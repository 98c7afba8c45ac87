/** External accounts with which the developer signs in: the linked ones, and linking another. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../../core/api.ts"
import { leaveFor, notify, platform, proof } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Cancel, Dialog } from "../../parts/dialog.tsx"
import { Form, useAction } from "../../parts/form.tsx"
import { Failure, Loaded } from "../../parts/load-states.tsx"
import { Badge, Button, Panel, Time } from "../../parts/basics.tsx"
import { hasProof, type identitiesRoute, ProofFields, proofOf, useIdentities } from "./proof.tsx"

const { account: own } = texts

type Identity = Response<typeof identitiesRoute>["identities"][number]

const nameOf = (provider: string): string => texts.welcome.providers[provider] ?? provider

const Unlink = ({
  close,
  done,
  provider
}: {
  readonly provider: string
  readonly close: () => void
  readonly done: () => void
}) => (
  <Dialog title={own.unlink(nameOf(provider))} close={close}>
    <p>{own.unlinkText}</p>
    {hasProof() ? (
      <Form
        submit={own.unlink(nameOf(provider))}
        danger
        after={<Cancel close={close} />}
        send={async (values) => {
          await ask("DELETE /v1/developers/me/identities/:provider", {
            params: { provider },
            body: proofOf(values)
          })
          proof.value = undefined
          done()
          close()
          notify(own.unlinkedDone(nameOf(provider)))
        }}
      >
        <ProofFields />
      </Form>
    ) : (
      <ProofFields />
    )}
  </Dialog>
)

const Linked = ({ identity, unlink }: Readonly<{ identity: Identity; unlink: () => void }>) => (
  <li>
    <div class="row">
      <strong>{nameOf(identity.provider)}</strong>
      <Badge kind="green">{own.linked}</Badge>
      <span>{identity.email ?? identity.username}</span>
      <Time at={identity.linkedAt} />
      <span class="grow" />
      <Button kind="danger small" onClick={unlink}>
        {own.unlink(nameOf(identity.provider))}
      </Button>
    </div>
  </li>
)

const Unlinked = ({ provider }: { readonly provider: string }) => {
  const { busy, error, run } = useAction(() => leaveFor(provider, "link"))
  return (
    <li>
      <div class="row">
        <strong>{nameOf(provider)}</strong>
        <Badge>{own.notLinked}</Badge>
        <span class="grow" />
        <Button kind="small" disabled={busy} onClick={run}>
          {own.link(nameOf(provider))}
        </Button>
      </div>
      {error !== undefined && <Failure error={error} />}
    </li>
  )
}

export const Identities = () => {
  const load = useIdentities()
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const { oauthProviders = [] } = platform.value ?? {}
  return (
    <Panel title={own.identities} lead={own.identitiesLead}>
      <Loaded of={load}>
        {({ identities }) => {
          const linked = new Set(identities.map(({ provider }) => provider))
          const others = oauthProviders.filter((provider) => !linked.has(provider))
          if (linked.size + others.length === 0) {
            return <p class="body soft">{own.noProviders}</p>
          }
          return (
            <ul class="timeline">
              {identities.map((identity) => (
                <Linked
                  key={identity.provider}
                  identity={identity}
                  unlink={() => setChosen(identity.provider)}
                />
              ))}
              {others.map((provider) => (
                <Unlinked key={provider} provider={provider} />
              ))}
            </ul>
          )
        }}
      </Loaded>
      {chosen !== undefined && (
        <Unlink provider={chosen} close={() => setChosen(undefined)} done={load.refresh} />
      )}
    </Panel>
  )
}
