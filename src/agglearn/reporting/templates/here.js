document.documentElement.classList.add("has-results"); // pages of docs/ that lie beside the site show their links to it
