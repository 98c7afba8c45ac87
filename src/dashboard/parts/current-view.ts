/** The current view of the dashboard, from its address: project, environment, view and what is open in it. */
import { createContext } from "preact"
import { useContext } from "preact/hooks"
import { useLocation } from "preact-iso"
import type { Project } from "#rpc/projects/projects"

export type EnvironmentName = "development" | "production"

export interface CurrentView {
  readonly project: Project
  readonly env: EnvironmentName
  readonly view: string
  /** Id of the open item in the view, such as a player. */
  readonly item: string | undefined
  /** Parameters of the API's paths. */
  readonly params: { readonly projectId: string; readonly env: string }
}

const CurrentViewContext = createContext<CurrentView | undefined>(undefined)

export const CurrentViewProvider = CurrentViewContext.Provider

export const useCurrentView = (): CurrentView => {
  const current = useContext(CurrentViewContext)
  if (current === undefined) throw new Error("There is no project here")
  return current
}

/** The address of a view of an environment. */
export const addressOf = (project: Project, env: EnvironmentName, ...path: ReadonlyArray<string>) =>
  ["/dashboard", project.slug, env, ...path.map(encodeURIComponent)].join("/")

/** A value in the query of the address, and its change. */
export const useQueryValue = (name: string): readonly [string, (value: string) => void] => {
  const { path, query, route } = useLocation()
  const change = (value: string) => {
    const next = new URLSearchParams({ ...query, [name]: value })
    if (value === "") next.delete(name)
    const text = next.toString()
    route(text === "" ? path : `${path}?${text}`, true)
  }
  return [query[name] ?? "", change]
}
