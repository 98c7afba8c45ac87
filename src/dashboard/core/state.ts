/** State that all views share: the signed-in developer, their projects, toasts, and the theme. */
import { signal } from "@preact/signals"
import { makeProofKey } from "#client/pkce"
import type { Developer, PlatformInfo } from "#rpc/developers"
import type { Project } from "#rpc/projects/projects"
import { ask, askOnce, onSignedOut } from "./api.ts"
import { texts } from "./texts.ts"

/**
 * Signed-in developer; undefined until the service has answered, null while nobody is signed in.
 */
export const developer = signal<Developer | null | undefined>(undefined)
export const projects = signal<ReadonlyArray<Project> | undefined>(undefined)
export const platform = signal<typeof PlatformInfo.Type | undefined>(undefined)

/** A short message, with an action that takes the change back where there is one. */
export interface Toast {
  readonly id: number
  readonly text: string
  readonly action?: { readonly label: string; readonly run: () => void } | undefined
}

export const toasts = signal<ReadonlyArray<Toast>>([])

const toastMillis = 8000
const toastsMax = 4
let toastCount = 0

export const dismiss = (id: number): void => {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

/** Shows a message for some seconds. */
export const notify = (text: string, action?: Toast["action"]): void => {
  toastCount += 1
  const id = toastCount
  toasts.value = [...toasts.value.slice(1 - toastsMax), { id, text, action }]
  setTimeout(() => dismiss(id), toastMillis)
}

export const refreshProjects = async (): Promise<void> => {
  projects.value = (await ask("GET /v1/projects")).projects
}

/** Stores the signed-in developer and loads the projects. */
export const enter = async (account: Developer): Promise<void> => {
  await refreshProjects()
  developer.value = account
}

/** Restores the developer of an earlier session; both reads are under way at once. */
const enterAgain = async (): Promise<void> => {
  const [account] = await Promise.all([ask("GET /v1/developers/me"), refreshProjects()])
  developer.value = account.developer
}

onSignedOut.run = () => {
  developer.value = null
}

/** Removes the parameters of a link or a provider from the address, and returns them. */
const takeReturn = (): URLSearchParams => {
  const returned = new URLSearchParams(location.hash.slice(1))
  if (["code", "svc_code", "svc_error"].some((name) => returned.has(name))) {
    history.replaceState(null, "", location.pathname + location.search)
  }
  return returned
}

/** Reason why the link or the provider did not sign in. */
export const linkProblem = signal<string | undefined>(undefined)

/**
 * Purpose of a flow with a provider: a sign-in, another way to sign in, or a new proof of identity.
 */
type Intent = "login" | "link" | "reauth"

/** Proof, for some minutes, that the developer has signed in with the provider once more. */
export const proof = signal<string | undefined>(undefined)

const proofMillis = 280_000

/** Links a provider, or keeps the proof, for the developer of the session. */
const finishOwnFlow = async (code: string, verifier: string): Promise<void> => {
  const result = await askOnce("POST /v1/developers/oauth/exchange", { body: { code, verifier } })
  if (result.intent === "link") {
    const name = texts.welcome.providers[result.provider] ?? result.provider
    notify(texts.account.linkedDone(name))
  }
  if (result.intent === "reauth") {
    proof.value = result.reauthToken
    setTimeout(() => {
      proof.value = undefined
    }, proofMillis)
  }
}

/** Signs in by what is in the address; undefined if nothing is. */
const signInByAddress = async (): Promise<Developer | undefined> => {
  const returned = takeReturn()
  const code = returned.get("code")
  if (code !== null) {
    return (await askOnce("POST /dashboard/session/link", { body: { code } })).developer
  }
  const error = returned.get("svc_error")
  if (error !== null) throw new Error(texts.welcome.providerFailed(error))
  const providerCode = returned.get("svc_code")
  if (providerCode === null) return undefined
  const [intent, verifier = ""] = (sessionStorage.getItem(flowKey) ?? "").split(" ")
  sessionStorage.removeItem(flowKey)
  if (intent === "link" || intent === "reauth") {
    await finishOwnFlow(providerCode, verifier)
    return undefined
  }
  const body = { code: providerCode, verifier }
  return (await askOnce("POST /dashboard/session/exchange", { body })).developer
}

/**
 * Storage key of the intent, and of the proof that this page started the flow, until the provider
 * returns.
 */
const flowKey = "svc-sign-in"

/** Navigates to a provider, which returns to the dashboard. */
export const leaveFor = async (provider: string, intent: Intent = "login"): Promise<void> => {
  const { challenge, verifier } = await makeProofKey()
  const { url } = await ask("POST /v1/developers/oauth/:provider/start", {
    params: { provider },
    body: {
      challenge,
      intent,
      redirectUrl: `${location.origin}/dashboard${intent === "login" ? "" : "/account"}`
    }
  })
  sessionStorage.setItem(flowKey, `${intent} ${verifier}`)
  location.assign(url)
}

/** Reads who is signed in, or signs in by the address. */
export const start = async (): Promise<void> => {
  const info = ask("GET /v1/platform/info").then((value) => {
    platform.value = value
  })
  const signedIn = await signInByAddress().catch((error: unknown) => {
    linkProblem.value = error instanceof Error ? error.message : String(error)
    return undefined
  })
  // A session from before still counts.
  await (signedIn === undefined ? enterAgain().catch(() => undefined) : enter(signedIn))
  await info
  if (developer.value === undefined) developer.value = null
}

const tickMillis = 5000

/** Grows every few seconds. What shows the distance to a time reads it, to be drawn again. */
export const tick = signal(0)
setInterval(() => {
  tick.value += 1
}, tickMillis)

export type Theme = "system" | "light" | "dark"

const storedTheme = (): Theme => {
  const stored = localStorage.getItem("svc-theme")
  return stored === "light" || stored === "dark" ? stored : "system"
}

export const theme = signal<Theme>(storedTheme())

export const setTheme = (next: Theme): void => {
  theme.value = next
  if (next === "system") {
    localStorage.removeItem("svc-theme")
    delete document.documentElement.dataset["theme"]
  } else {
    localStorage.setItem("svc-theme", next)
    document.documentElement.dataset["theme"] = next
  }
}
