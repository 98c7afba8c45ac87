/**
 * Script of the documentation: search, theme, menu and copy buttons. The search ranks sections: a
 * word in the title of the page counts most, then in the heading, then in the text. Sections of the
 * changelog come last. The page fetches the index when it has loaded, so that the search works
 * without a network.
 */
document.documentElement.classList.add("scripted")
addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement
  const $ = (selector) => document.querySelector(selector)
  const input = $("input[type=search]"),
    results = $("#results"),
    menu = $("#menu"),
    pages = $("#pages")
  const make = (tag, text) => {
    const element = document.createElement(tag)
    element.textContent = text
    return element
  }

  let failed = false
  const index = fetch("/docs/-/search.json")
    .then((response) => response.json())
    .catch(() => {
      failed = true
      return []
    })

  const excerpt = (text, word) => {
    const near = Math.max(0, text.toLowerCase().indexOf(word) - 40)
    const at = near === 0 ? 0 : text.indexOf(" ", near) + 1
    return (
      (at > 0 ? "... " : "") + text.slice(at, at + 140) + (at + 140 < text.length ? " ..." : "")
    )
  }
  const score = (entry, words) => {
    let sum = 0
    for (const word of words) {
      const [title, heading, text] = entry.lower
      const points =
        (title.includes(word) ? 8 : 0) +
        (heading.includes(word) ? 6 : 0) +
        (text.includes(word) ? 1 : 0)
      if (points === 0) return 0
      sum += points + (heading.split(" ").includes(word) ? 3 : 0)
    }
    return entry.url.startsWith("/docs/changelog") ? sum / 100 : sum
  }
  const show = async () => {
    const words = input.value
      .toLowerCase()
      .split(/\s+/)
      .filter((word) => word !== "")
    const entries = await index
    if (words.length === 0) {
      results.hidden = true
      results.replaceChildren()
      return
    }
    const found = entries
      .map((entry) => {
        entry.lower ??= [entry.title, entry.heading, entry.text].map((part) => part.toLowerCase())
        return [score(entry, words), entry]
      })
      .filter(([points]) => points > 0)
      .toSorted(([a], [b]) => b - a)
      .slice(0, 12)
    const links = found.map(([, { heading, text, title, url }]) => {
      const link = make("a", "")
      link.href = url
      link.append(
        make("b", heading),
        make(
          "small",
          heading === title ? excerpt(text, words[0]) : title + ": " + excerpt(text, words[0])
        )
      )
      return link
    })
    const none = failed
      ? "The search index could not be loaded. Reload the page."
      : "Nothing found."
    results.replaceChildren(...(links.length === 0 ? [make("p", none)] : links))
    results.hidden = false
  }
  input.addEventListener("input", show)
  input.addEventListener("focus", show)
  const close = () => {
    results.hidden = true
  }
  const steps = { ArrowDown: 1, ArrowUp: -1 }
  $("search").addEventListener("keydown", (event) => {
    const stops = [input, ...results.querySelectorAll("a")]
    const step = steps[event.key]
    if (event.key === "Escape") {
      close()
      input.blur()
    }
    if (event.key === "Enter" && event.target === input) stops[1]?.click()
    if (step !== undefined) {
      event.preventDefault()
      stops[
        Math.min(stops.length - 1, Math.max(0, stops.indexOf(document.activeElement) + step))
      ].focus()
    }
  })
  addEventListener("keydown", (event) => {
    const typing = /^(?:INPUT|TEXTAREA)$/.test(document.activeElement.tagName)
    if ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault()
      input.focus()
      input.select()
    }
  })
  addEventListener("click", (event) => {
    if (!event.target.closest("search") || event.target.closest("#results a")) close()
  })

  menu.addEventListener("click", () => {
    menu.setAttribute("aria-expanded", String(pages.classList.toggle("open")))
  })
  $("#theme").addEventListener("click", () => {
    const dark =
      getComputedStyle(root).colorScheme === "dark" ||
      (!root.dataset.theme && matchMedia("(prefers-color-scheme:dark)").matches)
    root.dataset.theme = dark ? "light" : "dark"
    try {
      localStorage.setItem("theme", root.dataset.theme)
    } catch {}
  })
  $("#pages [aria-current]")?.scrollIntoView({ block: "nearest" })
  for (const block of document.querySelectorAll("pre")) {
    const button = make("button", "Copy")
    button.type = "button"
    button.className = "copy"
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent)
      button.textContent = "Copied"
    })
    block.append(button)
  }
})
