// What a form cannot do by itself: take a dropped file, hand it over, and be pressed only once.
"use strict";

const say = (form, text) => {
  const line = form.querySelector(".progress");
  if (line) line.textContent = text;
};

// A file may be dropped on the box around its input.
for (const box of document.querySelectorAll(".drop")) {
  const input = box.querySelector("input[type=file]");
  for (const kind of ["dragenter", "dragover"]) {
    box.addEventListener(kind, (event) => { event.preventDefault(); box.classList.add("over"); });
  }
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    if (event.dataTransfer.files.length) {
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  input.addEventListener("change", () => box.classList.toggle("has", input.files.length > 0));
}
// Elsewhere a dropped file would replace the page.
for (const kind of ["dragover", "drop"]) {
  window.addEventListener(kind, (event) => event.preventDefault());
}

// The study's file becomes the text of its form, which is then sent.
for (const form of document.querySelectorAll("form[data-reads]")) {
  const input = form.querySelector("input[type=file]");
  input.addEventListener("change", async () => {
    if (!input.files.length) return;
    document.getElementById(form.getAttribute("data-reads")).value = await input.files[0].text();
    form.requestSubmit();
  });
}

// A table is handed over first, and the form then says which it was. (A field called dataset
// hides the form's own property of that name: attributes are read by name.)
const handOver = (form, file) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  request.open("PUT", `${form.getAttribute("data-uploads")}?name=${encodeURIComponent(file.name)}`);
  request.responseType = "json";
  request.upload.onprogress = (event) => {
    if (event.lengthComputable) say(form, `Taking the table: ${Math.floor(100 * event.loaded / event.total)} %`);
  };
  request.onload = () => request.status === 200
    ? resolve(request.response.id)
    : reject(new Error(request.response ? request.response.error : "the desk did not take the table"));
  request.onerror = () => reject(new Error("the desk does not answer: is it still open?"));
  request.send(file);
});

for (const form of document.querySelectorAll("form[data-uploads]")) {
  const input = form.querySelector("input[type=file]");
  input.addEventListener("change", () => {
    for (const radio of form.querySelectorAll("input[name=source]")) radio.checked = false;
  });
  form.addEventListener("submit", async (event) => {
    const button = form.querySelector("button[type=submit]");
    button.disabled = true;
    if (!input.files.length) { say(form, "Reading the table…"); return; }
    event.preventDefault();
    try {
      const chosen = document.createElement("input");
      chosen.type = "hidden";
      chosen.name = "source";
      chosen.value = await handOver(form, input.files[0]);
      form.append(chosen);
      say(form, "Reading the table…");
      form.submit();
    } catch (error) {
      button.disabled = false;
      say(form, error.message);
    }
  });
}

// What is pressed twice is sent once; the desk would know it all the same.
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.hasAttribute("data-sent")) { event.preventDefault(); return; }
    form.setAttribute("data-sent", "yes");
    say(form, "Publishing…");
  });
}
// A page that comes back from the browser's memory can be used again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form")) form.removeAttribute("data-sent");
  for (const button of document.querySelectorAll("button:disabled")) button.disabled = false;
});
