document.documentElement.classList.add("has-pages"); // the site of results shows its links to these pages
