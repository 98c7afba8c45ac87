/** Account page: the developer's own data and sign-in methods. */
import { useState } from "preact/hooks"
import { ask } from "../../core/api.ts"
import { developer, linkProblem, notify, platform } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { cents } from "../../parts/amounts.ts"
import { Field, Form, useAction } from "../../parts/form.tsx"

import { signOut } from "../../parts/load.ts"
import { Failure } from "../../parts/load-states.tsx"
import { Badge, Button, Copyable, Facts, Panel, Time, Title } from "../../parts/basics.tsx"
import { Identities } from "./identities.tsx"
import { Password } from "./password.tsx"

const { account: own } = texts

const Confirmation = () => {
  const [isSent, setSent] = useState(false)
  const { busy, error, run } = useAction(async () => {
    await ask("POST /v1/developers/me/email/verification")
    setSent(true)
    notify(own.confirmSent)
  })
  return (
    <>
      <Badge kind="amber">{own.unconfirmed}</Badge>{" "}
      {!isSent && (
        <Button kind="small" disabled={busy} onClick={run}>
          {own.confirm}
        </Button>
      )}
      {error !== undefined && <Failure error={error} />}
    </>
  )
}

const Profile = () => {
  const account = developer.value
  if (account === null || account === undefined) return null
  return (
    <Panel title={own.profile}>
      <Facts
        of={[
          [
            own.email,
            <>
              {account.email}{" "}
              {account.emailVerified ? (
                <Badge kind="green">{own.confirmed}</Badge>
              ) : (
                <Confirmation />
              )}
            </>
          ],
          [own.name, account.name ?? <span class="soft">{own.noName}</span>],
          [texts.settings.id, <Copyable text={account.id} label={texts.settings.id} />],
          [own.since, <Time at={account.createdAt} />]
        ]}
      />
    </Panel>
  )
}

const InviteCode = () => (
  <Panel title={own.invite} lead={own.inviteLead}>
    <div class="body">
      <Form
        submit={own.redeem}
        send={async ({ code = "" }) => {
          const { credited, pending } = await ask("POST /v1/developers/me/invite-code", {
            body: { code: code.trim() }
          })
          notify(pending ? own.redeemedPending(cents(credited)) : own.redeemed(cents(credited)))
        }}
      >
        <Field label={own.code} name="code" autocomplete="off" required />
      </Form>
    </div>
  </Panel>
)

const Session = () => (
  <Panel title={own.session} lead={own.sessionLead}>
    <div class="body row end">
      <Button onClick={signOut}>{own.signOut}</Button>
    </div>
  </Panel>
)

export const Account = () => (
  <>
    <Title text={own.title} lead={own.lead} />
    {linkProblem.value !== undefined && (
      <p class="notice amber" role="alert">
        {linkProblem.value}
      </p>
    )}
    <Profile />
    <Password />
    <Identities />
    {platform.value?.billing.enabled === true && <InviteCode />}
    <Session />
  </>
)
