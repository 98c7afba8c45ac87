/**
 * Proof that the person at the keyboard is the developer, before a change of the sign-in methods.
 * It is the password, or without one, another sign-in with the provider.
 */
import { ask } from "../../core/api.ts"
import { developer, leaveFor, proof } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Button } from "../../parts/basics.tsx"
import { Field, useAction, type Values } from "../../parts/form.tsx"
import { useLoad } from "../../parts/load.ts"
import { Failure } from "../../parts/load-states.tsx"

const { account: own } = texts

export const identitiesRoute = "GET /v1/developers/me/identities"

export const useIdentities = () =>
  useLoad("identities", (signal) => ask(identitiesRoute, { signal }))

/** The proof that the API wants, of the values of a form. */
export const proofOf = ({ current = "" }: Values) =>
  proof.value === undefined ? { password: current } : { reauthToken: proof.value }

/** Whether a form with {@link ProofFields} can be sent. */
export const hasProof = (): boolean =>
  developer.value?.hasPassword === true || proof.value !== undefined

const Providers = () => {
  const { data } = useIdentities()
  const { busy, error, run } = useAction((provider: string) => leaveFor(provider, "reauth"))
  return (
    <>
      <p>{own.prove}</p>
      <div class="row">
        {data?.identities.map(({ provider }) => (
          <Button key={provider} disabled={busy} onClick={() => run(provider)}>
            {own.proveWith(texts.welcome.providers[provider] ?? provider)}
          </Button>
        ))}
      </div>
      {error !== undefined && <Failure error={error} />}
    </>
  )
}

/** The field of the password, or the way to the provider. */
export const ProofFields = () => {
  if (developer.value?.hasPassword === true) {
    return (
      <Field
        label={own.current}
        name="current"
        type="password"
        autocomplete="current-password"
        required
      />
    )
  }
  return proof.value === undefined ? <Providers /> : <p class="notice">{own.proven}</p>
}
