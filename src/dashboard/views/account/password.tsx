/** The password: its change, or the first one of an account that signs in with a provider. */
import { useState } from "preact/hooks"
import { ask } from "../../core/api.ts"
import { developer, notify, proof } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Field, Form } from "../../parts/form.tsx"
import { Panel } from "../../parts/basics.tsx"
import { hasProof, ProofFields } from "./proof.tsx"

const { account: own } = texts

export const Password = () => {
  // A new key replaces the fields, so no password stays in the page.
  const [round, setRound] = useState(0)
  const hasPassword = developer.value?.hasPassword === true
  return (
    <Panel title={own.password} lead={hasPassword ? own.passwordLead : own.noPasswordLead}>
      <div class="body stack" key={round}>
        {hasProof() ? (
          <Form
            submit={hasPassword ? own.change : own.set}
            send={async (values) => {
              const { current = "", new: newPassword = "" } = values
              const reauthToken = proof.value
              const { developer: changed } = await ask("POST /v1/developers/me/password", {
                body:
                  reauthToken === undefined
                    ? { currentPassword: current, newPassword }
                    : { reauthToken, newPassword }
              })
              proof.value = undefined
              developer.value = changed
              setRound(round + 1)
              notify(own.changed)
            }}
          >
            <ProofFields />
            <Field
              label={own.new}
              hint={own.newHint}
              name="new"
              type="password"
              autocomplete="new-password"
              required
            />
          </Form>
        ) : (
          <ProofFields />
        )}
      </div>
    </Panel>
  )
}
