// SPDX-License-Identifier: Apache-2.0
// speedscope_import.js DIR FILE...: reads each file by the importer of the speedscope release in DIR and
// prints what it made of it: the total weight and the names of its frames, as JSON.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [dir, ...files] = process.argv.slice(2);

// Parcel's bundles define modules and then run their entries. The entries draw: without a browser only
// the modules are wanted.
function bundle(prefix) {
  const name = fs.readdirSync(dir).find((f) => f.startsWith(prefix + ".") && f.endsWith(".js"));
  const text = fs.readFileSync(path.join(dir, name), "utf8");
  return text.replace(/,\{\},\[[^\]]*\], ?null\)\s*(\/\/.*)?\s*$/, ",{},[],null)");
}
global.window = global;
global.self = global;
vm.runInThisContext(bundle("speedscope"));
const chunk = bundle("import");
vm.runInThisContext(chunk);
const id = /"([\w+\/]+)":\[function\(require,module,exports\) \{(?:(?!\[function\().)*?exports\.importProfileGroupFromText=/s.exec(chunk)[1];
const importer = parcelRequire(id);

(async () => {
  const all = [];
  for (const file of files) {
    const b = fs.readFileSync(file);
    const group = await importer.importProfilesFromArrayBuffer(
      path.basename(file), b.buffer.slice(b.byteOffset, b.byteOffset + b.length));
    const profile = group.profiles[group.indexToView || 0], names = new Set();
    profile.forEachFrame((f) => names.add(f.name));
    all.push({ total: profile.getTotalNonIdleWeight(), names: [...names].sort() });
  }
  console.log(JSON.stringify(all));
})().catch((e) => { console.error(e); process.exit(1); });
