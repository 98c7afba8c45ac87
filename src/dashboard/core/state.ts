/** What all views share: who is signed in, their projects, toasts, and the theme. */
import { signal } from "@preact/signals"
import type { Developer, PlatformInfo } from "#rpc/developers"
import type { Project } from "#rpc/projects"
import { ask, onSignedOut } from "./api.ts"

/** Undefined until the service has answered; null while nobody is signed in. */
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

/** Takes the signed-in developer over and loads the projects. */
export const enter = async (account: Developer): Promise<void> => {
  await refreshProjects()
  developer.value = account
}

onSignedOut.run = () => {
  developer.value = null
}

/** The code of a one-time link, which is removed from the address. */
const takeCode = (): string | undefined => {
  const code = new URLSearchParams(location.hash.slice(1)).get("code")
  if (code === null) return undefined
  history.replaceState(null, "", location.pathname + location.search)
  return code
}

/** Why the one-time link of the address did not sign in. */
export const linkProblem = signal<string | undefined>(undefined)

/** Reads who is signed in, or signs in by the link. */
export const start = async (): Promise<void> => {
  platform.value = await ask("GET /v1/platform/info")
  const code = takeCode()
  try {
    const { developer: account } =
      code === undefined
        ? await ask("GET /v1/developers/me")
        : await ask("POST /dashboard/session/link", { body: { code } })
    await enter(account)
  } catch (error) {
    if (code !== undefined && error instanceof Error) {
      linkProblem.value = error.message
      // A session from before still counts.
      const before = await ask("GET /v1/developers/me").catch(() => undefined)
      if (before !== undefined) return enter(before.developer)
    }
    if (developer.value === undefined) developer.value = null
  }
}

export const signOut = async (): Promise<void> => {
  await ask("DELETE /dashboard/session")
  developer.value = null
}

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
