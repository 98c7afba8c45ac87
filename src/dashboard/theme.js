/** Applies the chosen theme before the first paint. */
const theme = localStorage.getItem("svc-theme")
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme
