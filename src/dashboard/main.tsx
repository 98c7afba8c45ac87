/** Entry of the dashboard: sign-in, the projects, or a view of an environment, by the address. */
import { render } from "preact"
import { useEffect } from "preact/hooks"
import { ErrorBoundary, LocationProvider, useLocation } from "preact-iso"
import { addressOf, CurrentViewProvider, type CurrentView } from "./parts/current-view.ts"
import { Button } from "./parts/basics.tsx"
import { Empty, Skeleton } from "./parts/load-states.tsx"
import { Frame } from "./shell/frame.tsx"
import { views } from "./shell/navigation.ts"
import { OwnPage } from "./shell/own-page.tsx"
import { Projects } from "./shell/projects.tsx"
import { Welcome } from "./shell/welcome.tsx"
import { developer, dismiss, platform, projects, start, toasts } from "./core/state.ts"
import { texts } from "./core/texts.ts"
import { Account } from "./views/account/account.tsx"
import { Money } from "./views/money/money.tsx"

/** The view that an address names; undefined where it names no project of this developer. */
const currentViewOf = (path: string): CurrentView | undefined => {
  const [, , slug, env, view = "overview", item] = path.split("/")
  const project = projects.value?.find((it) => it.slug === slug)
  if (project === undefined || (env !== "development" && env !== "production")) return undefined
  const opened = item === undefined || item === "" ? undefined : decodeURIComponent(item)
  return { project, env, view, item: opened, params: { projectId: project.id, env } }
}

const Missing = () => <Empty title={texts.missing.title} text={texts.missing.text} />

const Environment = ({ current }: { readonly current: CurrentView }) => {
  const View = views.find(({ word }) => word === current.view)?.view ?? Missing
  return (
    <CurrentViewProvider value={current}>
      <Frame>
        <ErrorBoundary>
          <View key={`${current.project.id}/${current.env}/${current.view}/${current.item}`} />
        </ErrorBoundary>
      </Frame>
    </CurrentViewProvider>
  )
}

/** The browser remembers the project that was open last. */
const lastKey = "svc-project"

/** Target of `/dashboard`: the last project or the first; undefined without any. */
const homeOf = (): string | undefined => {
  const last = localStorage.getItem(lastKey)
  const all = projects.value ?? []
  const project = all.find(({ slug }) => slug === last) ?? all[0]
  return project === undefined ? undefined : addressOf(project, "development", "overview")
}

/** The developer's own pages; an address that names no project shows all of them. */
const Own = ({ path }: { readonly path: string }) => {
  if (path === "/dashboard/money") {
    return (
      <OwnPage page="money">
        <Money />
      </OwnPage>
    )
  }
  if (path === "/dashboard/account") {
    return (
      <OwnPage page="account">
        <Account />
      </OwnPage>
    )
  }
  return <Projects />
}

/** Dashboard of a signed-in developer. */
const Inside = () => {
  const { path, route } = useLocation()
  const current = currentViewOf(path)
  const home = path === "/dashboard" ? homeOf() : undefined
  useEffect(() => {
    if (home !== undefined) route(home, true)
    if (current !== undefined) localStorage.setItem(lastKey, current.project.slug)
  }, [home, current?.project.slug])
  if (home !== undefined) return <Skeleton />
  return current === undefined ? <Own path={path} /> : <Environment current={current} />
}

const Page = () => {
  if (developer.value === undefined || platform.value === undefined) return <Skeleton />
  return developer.value === null ? <Welcome /> : <Inside />
}

const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {toasts.value.map(({ action, id, text }) => (
      <div class="toast" key={id}>
        <span>{text}</span>
        {action !== undefined && (
          <Button
            kind="small"
            onClick={() => {
              dismiss(id)
              action.run()
            }}
          >
            {action.label}
          </Button>
        )}
      </div>
    ))}
  </div>
)

const App = () => (
  <LocationProvider scope="/dashboard">
    <Page />
    <Toasts />
  </LocationProvider>
)

const root = document.querySelector("#app")
if (root !== null) {
  root.replaceChildren()
  render(<App />, root)
}
void start()
