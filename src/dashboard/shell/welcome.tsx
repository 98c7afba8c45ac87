/** Sign-in and sign-up. In production the first account needs the setup token. */
import { signal } from "@preact/signals"
import { ask } from "../core/api.ts"
import { Button } from "../parts/basics.tsx"
import { Field, Form, useAction, type Values } from "../parts/form.tsx"
import { Failure } from "../parts/load-states.tsx"
import { enter, leaveFor, linkProblem, platform } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Brand } from "./frame.tsx"

const { welcome } = texts

const credentialsOf = (values: Values) => ({
  email: values["email"] ?? "",
  password: values["password"] ?? ""
})

const signIn = async (values: Values): Promise<void> => {
  const body = credentialsOf(values)
  const { developer } = await ask("POST /dashboard/session", { body })
  await enter(developer)
}

const signUp = async (values: Values): Promise<void> => {
  const { inviteCode, name, setupToken } = values
  const { developer } = await ask("POST /dashboard/session/signup", {
    body: {
      ...credentialsOf(values),
      ...(name === undefined ? {} : { name }),
      ...(inviteCode === undefined ? {} : { inviteCode }),
      ...(setupToken === undefined ? {} : { setupToken })
    }
  })
  await enter(developer)
}

const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)

const registering = signal<boolean | undefined>(undefined)

const SignUp = () => (
  <Form submit={welcome.signUp} send={signUp}>
    <Field label={welcome.email} name="email" type="email" autocomplete="email" required />
    <Field label={welcome.name} name="name" autocomplete="name" />
    <Field
      label={welcome.password}
      name="password"
      type="password"
      autocomplete="new-password"
      required
    />
    {platform.value?.setupTokenRequired === true ? (
      <Field
        label={welcome.setupToken}
        hint={welcome.setupTokenHint}
        name="setupToken"
        autocomplete="off"
        required
      />
    ) : (
      platform.value?.signups === "invite" && (
        <Field label={welcome.inviteCode} name="inviteCode" autocomplete="off" required />
      )
    )}
  </Form>
)

const SignIn = () => (
  <Form submit={welcome.signIn} send={signIn}>
    <Field label={welcome.email} name="email" type="email" autocomplete="username" required />
    <Field
      label={welcome.password}
      name="password"
      type="password"
      autocomplete="current-password"
      required
    />
  </Form>
)

/** Sign-in with the providers that the operator has set up. */
const Providers = () => {
  const { busy, error, run } = useAction((provider: string) => leaveFor(provider))
  const { oauthProviders = [] } = platform.value ?? {}
  return (
    <>
      {oauthProviders.map((provider) => (
        <Button key={provider} disabled={busy} onClick={() => run(provider)}>
          {welcome.with(welcome.providers[provider] ?? provider)}
        </Button>
      ))}
      {error !== undefined && <Failure error={error} />}
    </>
  )
}

export const Welcome = () => {
  const { setupTokenRequired = false, signups = "closed" } = platform.value ?? {}
  const isNew = registering.value ?? setupTokenRequired
  document.title = `${isNew ? welcome.signUpTitle : welcome.signInTitle} · ${texts.product}`
  return (
    <main class="welcome">
      <div class="card">
        <div class="brand">
          <Brand />
        </div>
        <section class="panel stack">
          <h1>{isNew ? welcome.signUpTitle : welcome.signInTitle}</h1>
          {linkProblem.value !== undefined && <p class="notice amber">{linkProblem.value}</p>}
          {isNew ? <SignUp /> : <SignIn />}
          <Providers />
          {isNew && <p class="soft small">{welcome.signUpNote}</p>}
          {!isNew && isLocal && <p class="soft small">{welcome.signInNote}</p>}
        </section>
        {(isNew || signups !== "closed" || setupTokenRequired) && (
          <Button
            kind="quiet"
            onClick={() => {
              registering.value = !isNew
            }}
          >
            {isNew ? welcome.toSignIn : welcome.toSignUp}
          </Button>
        )}
      </div>
    </main>
  )
}
