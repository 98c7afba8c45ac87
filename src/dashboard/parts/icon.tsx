/** Icons, drawn for this page on a grid of 24 with a stroke of 1.5. Each stands beside a text. */

const paths = {
  overview: "M4 13h6V4H4v9Zm0 7h6v-4H4v4Zm10 0h6v-9h-6v9Zm0-16v4h6V4h-6Z",
  players:
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Zm-6 9c0-3.3 2.7-6 6-6s6 2.7 6 6m1-9.5" +
    "a3 3 0 1 0-1-5.8M18 14.5c1.8.9 3 2.8 3 5.5",
  live:
    "M12 13a1 1 0 1 0 0-2 1 1 0 0 0 0 2ZM8 16a5.5 5.5 0 0 1 0-8m8 0a5.5 5.5 0 0 1 0 8" +
    "M5 19a10 10 0 0 1 0-14m14 0a10 10 0 0 1 0 14",
  config:
    "M4 7h9m4 0h3M4 17h3m4 0h9M15 9.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-6 10" +
    "a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z",
  signin: "M14 4h5v16h-5M4 12h10m-3.5-4 4 4-4 4",
  moderation:
    "M12 3.5 5 6v5.5c0 4.3 2.9 7.4 7 9 4.1-1.6 7-4.7 7-9V6l-7-2.5Zm-3 8.5 2.2 2.2L15.5 10",
  hosting:
    "M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17Zm-8.3-8h16.6M12 3.5" +
    "c2.2 2.3 3.4 5.2 3.4 8.5s-1.2 6.2-3.4 8.5c-2.2-2.3-3.4-5.2-3.4-8.5S9.8 5.8 12 3.5",
  functions:
    "M8 5c-2.5 0-2.5 2-2.5 3.5S5 12 3.5 12c1.5 0 2 2 2 3.5S5.5 19 8 19m8-14" +
    "c2.5 0 2.5 2 2.5 3.5s.5 3.5 2 3.5c-1.5 0-2 2-2 3.5s0 3.5-2.5 3.5",
  money: "M4 7.5h16v10H4v-10Zm8 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z",
  account: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8Zm-7.5 8.500c0-3.600 3.400-6 7.5-6s7.5 2.400 7.5 6",
  share:
    "M8 12.5a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0Zm0-1.2 7.300-4m0 9.400-7.300-4M20 6" +
    "a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0Zm0 12a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0Z",
  keys: "M8.5 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm4-4.5H21m-3 0v3",
  audit: "M6 4h9l4 4v12H6V4Zm3 8h7m-7 4h7M9 8h3",
  playground:
    "M7 8h10a4 4 0 0 1 4 4v1.5a3.5 3.5 0 0 1-6.5 1.8L14 14.5h-4l-.5.8" +
    "A3.5 3.5 0 0 1 3 13.5V12a4 4 0 0 1 4-4Zm0 4h3m-1.5-1.5v3M16 11.5h.01M17.5 13h.01",
  settings:
    "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm0-11.5v3m0 11v3M3.5 12h3m11 0h3M6 6l2.100 2.100" +
    "m7.8 7.8L18 18M18 6l-2.100 2.100M8.100 15.900 6 18",
  search: "M11 17.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13Zm4.700-1.8L20 20",
  menu: "M4 7h16M4 12h16M4 17h16",
  copy: "M9 9h10v11H9V9Zm-4 6V4h10",
  check: "m5 12.5 4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6 6 18"
} as const

export type IconName = keyof typeof paths

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg
    class="icon"
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d={paths[name]} />
  </svg>
)
