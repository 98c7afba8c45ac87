/** Colours, type and spacing of the documentation and of the API page, in light and dark. */

/** Custom properties and elements that both pages share. */
export const tokens = `
:root{color-scheme:light dark;
--bg:light-dark(#fff,#0f1218);--soft:light-dark(#f5f6f9,#181c25);--line:light-dark(#dde1e9,#2b3140);
--text:light-dark(#1b2130,#e4e8f0);--quiet:light-dark(#535d73,#a0aabd);--link:light-dark(#3346c8,#9fb1ff);
--green:light-dark(#0b6638,#6fd69b);--amber:light-dark(#8a4600,#f2a65a);--red:light-dark(#b3131c,#ff8a80);
--violet:light-dark(#8b1f91,#dba2ff)}
:root[data-theme=light]{color-scheme:light}
:root[data-theme=dark]{color-scheme:dark}
*{box-sizing:border-box}
body{margin:0;font:16px/1.6 system-ui,sans-serif;background:var(--bg);color:var(--text)}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
input,button{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--line);border-radius:6px}
code,pre{font:14px/1.55 ui-monospace,"SF Mono",Menlo,monospace}
pre{overflow:auto;background:var(--soft);padding:12px 16px;border-radius:6px}
.wide{overflow-x:auto}
table{border-collapse:collapse}
th,td{text-align:left;vertical-align:top;padding:4px 16px 4px 0;border-bottom:1px solid var(--line)}`

/** Applies the chosen theme before the page is drawn. Without a choice the system decides. */
export const themeScript = `
try{const theme=localStorage.getItem("theme");if(theme)document.documentElement.dataset.theme=theme}catch{}`
