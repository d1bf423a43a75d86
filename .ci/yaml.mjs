// Parses YAML: the files that are its arguments, and the yaml blocks of those that are Markdown.
import {readFileSync} from 'node:fs';
import {parseAllDocuments} from 'yaml';

for (const file of process.argv.slice(2)) {
  const text = readFileSync(file, 'utf8');
  const blocks = file.endsWith('.md') ? text.matchAll(/(?<=^ *```ya?ml\n).*?(?=^ *```$)/gms) : [{0: text, index: 0}];
  for (const {0: block, index} of blocks) {
    const above = text.slice(0, index).replace(/.+/g, ''); // so that errors have the line of the file
    for (const {errors} of parseAllDocuments(above + block)) {
      for (const error of errors) {
        console.error(`${file}: ${error.message}`);
        process.exitCode = 1;
      }
    }
  }
}
