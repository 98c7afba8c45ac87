/** The frame around every view: project and environment, navigation, search, and the account. */
import type { ComponentChildren } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { useLocation } from "preact-iso"
import { Button } from "../parts/basics.tsx"
import { signOut } from "../parts/load.ts"
import { Icon } from "../parts/icon.tsx"
import { Tabs } from "../parts/tabs.tsx"
import { addressOf, type EnvironmentName, useCurrentView } from "../parts/current-view.ts"
import { developer, projects, setTheme, type Theme, theme } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { groups, ownPages } from "./navigation.ts"
import { Palette } from "./palette.tsx"

export const Brand = () => (
  <>
    <svg viewBox="0 0 24 24" aria-hidden="true">
      <rect width="24" height="24" rx="6" fill="#4f46e5" />
      <path d="M7 8h10M7 12h6M7 16h8" stroke="#fff" stroke-width="2" stroke-linecap="round" />
    </svg>
    <span>{texts.product}</span>
  </>
)

const ProjectSwitch = () => {
  const { route } = useLocation()
  const { env, project, view } = useCurrentView()
  const choose = (slug: string) => {
    const chosen = projects.value?.find((it) => it.slug === slug)
    route(chosen === undefined ? "/dashboard/projects" : addressOf(chosen, env, view))
  }
  return (
    <select
      class="select project-switch"
      aria-label={texts.shell.project}
      value={project.slug}
      onChange={({ currentTarget }) => choose(currentTarget.value)}
    >
      {projects.value?.map(({ name, slug }) => (
        <option key={slug} value={slug} selected={slug === project.slug}>
          {name}
        </option>
      ))}
      <option value="">{texts.shell.allProjects}</option>
    </select>
  )
}

const environments: ReadonlyArray<EnvironmentName> = ["development", "production"]

const EnvironmentSwitch = () => {
  const { env, project, view } = useCurrentView()
  return (
    <nav class="segment" aria-label={texts.shell.environment}>
      {environments.map((name) => (
        <a
          key={name}
          class={name}
          href={addressOf(project, name, view)}
          aria-label={texts.environments[name]}
          aria-current={name === env ? "true" : undefined}
        >
          <span class="wide">{texts.environments[name]}</span>
          <span class="narrow">{texts.shortEnvironments[name]}</span>
        </a>
      ))}
    </nav>
  )
}

const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]

/** The account, the theme, and sign-out. */
export const UserMenu = () => {
  const element = useRef<HTMLDetailsElement>(null)
  const close = () => element.current?.removeAttribute("open")
  return (
    <details
      class="user"
      ref={element}
      onKeyDown={({ key }) => key === "Escape" && close()}
      onFocusOut={({ currentTarget, relatedTarget }) => {
        if (relatedTarget instanceof Node && !currentTarget.contains(relatedTarget)) close()
      }}
    >
      <summary class="button" aria-label={texts.shell.account}>
        <Icon name="account" />
        <span class="wide">{texts.shell.account}</span>
      </summary>
      <div class="menu">
        <p class="small">
          {texts.shell.signedInAs} <strong>{developer.value?.email}</strong>
        </p>
        <Tabs
          label={texts.shell.theme}
          names={themes}
          texts={texts.themes}
          chosen={theme.value}
          choose={setTheme}
        />
        {ownPages.map(({ href, text }) => (
          <a key={href} class="button quiet" href={href} onClick={close}>
            {text}
          </a>
        ))}
        <a class="button quiet" href="/docs" target="_self">
          {texts.shell.docs}
        </a>
        <Button kind="quiet" onClick={signOut}>
          {texts.shell.signOut}
        </Button>
      </div>
    </details>
  )
}

const Navigation = ({ done }: { readonly done: () => void }) => {
  const { env, project, view } = useCurrentView()
  return (
    <nav aria-label={texts.shell.views} onClick={done}>
      {groups.map((group) => (
        <>
          <h2 key={group.title}>{group.title}</h2>
          {group.views.map(({ text, word }) => (
            <a
              key={word}
              href={addressOf(project, env, word)}
              aria-current={word === view ? "page" : undefined}
            >
              <Icon name={word} />
              {text}
            </a>
          ))}
        </>
      ))}
      <h2>{texts.groups.own}</h2>
      {ownPages.map(({ href, icon, text }) => (
        <a key={href} href={href}>
          <Icon name={icon} />
          {text}
        </a>
      ))}
    </nav>
  )
}

const isSearchKey = ({ ctrlKey, key, metaKey }: KeyboardEvent): boolean =>
  (ctrlKey || metaKey) && key.toLowerCase() === "k"

/** Whether the search is open; Ctrl+K opens it. */
const useSearch = () => {
  const [searching, setSearching] = useState(false)
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (!isSearchKey(event)) return
      event.preventDefault()
      setSearching(true)
    }
    document.addEventListener("keydown", listen)
    return () => document.removeEventListener("keydown", listen)
  }, [])
  return { searching, setSearching }
}

export const Frame = ({ children }: { readonly children: ComponentChildren }) => {
  const { env } = useCurrentView()
  const [open, setOpen] = useState(false)
  const { searching, setSearching } = useSearch()
  return (
    <div class={`frame ${env}`}>
      <a class="skip" href="#main" onClick={() => document.querySelector("main")?.focus()}>
        {texts.shell.skip}
      </a>
      <header class="top">
        <button
          type="button"
          class="button quiet menu-button"
          aria-expanded={open}
          aria-label={texts.shell.views}
          onClick={() => setOpen(!open)}
        >
          <Icon name="menu" />
        </button>
        <a class="brand" href="/dashboard" aria-label={texts.product}>
          <Brand />
        </a>
        <ProjectSwitch />
        <EnvironmentSwitch />
        <span class="grow" />
        <Button label={texts.shell.search} onClick={() => setSearching(true)}>
          <Icon name="search" />
          <span class="wide">{texts.shell.search}</span>
        </Button>
        <UserMenu />
      </header>
      <aside class={`side ${open ? "open" : ""}`} aria-label={texts.shell.side}>
        <Navigation done={() => setOpen(false)} />
      </aside>
      <main class="main" id="main" tabIndex={-1}>
        {children}
      </main>
      {searching && <Palette close={() => setSearching(false)} />}
    </div>
  )
}
