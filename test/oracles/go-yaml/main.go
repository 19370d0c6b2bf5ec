// Reads YAML the way kubectl and helm read it.
// usage: go-yaml <TEXTS; each line is a JSON string with a document; prints for each a line of JSON: {"json": VALUE}, or
// {"error": REASON}.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

const longestLine = 64 << 20

func main() {
	if err := answerAll(); err != nil {
		fmt.Fprintln(os.Stderr, "go-yaml:", err)
		os.Exit(1)
	}
}

func answerAll() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for lines.Scan() {
		var document string
		if err := json.Unmarshal(lines.Bytes(), &document); err != nil {
			return err
		}
		answer := map[string]any{}
		if value, err := readAsJSON(document); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["json"] = value
		}
		if err := output.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Decoded again, with all digits, so that it is printed without the escapes for HTML.
func readAsJSON(document string) (value any, err error) {
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}
