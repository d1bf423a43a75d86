package strict_test

import (
	"fmt"

	"example.com/events/internal/strict"
)

func ExampleParse() {
	v, err := strict.Parse([]byte(`{"title": "Tea", "seats": 12, "title": "Coffee"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range v.Members {
		fmt.Println(m.Name, "is", m.Value.Kind, m.Value.Text)
	}
	_, err = strict.Parse([]byte("{\n  \"title\": \"Tea\",\n}"))
	fmt.Println(err)
	// Output:
	// title is a string Tea
	// seats is a number 12
	// title is a string Coffee
	// line 3, column 1: expected a field name in double quotes: remove a trailing comma
}

func ExampleParseArray() {
	for v, err := range strict.ParseArray([]byte(`["Ada", "Grace" "Alan"]`)) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(v.Text)
	}
	// Output:
	// Ada
	// Grace
	// line 1, column 17: expected a comma or ]
}

func ExampleParseTime() {
	fmt.Println(strict.ParseTime("2016-12-31T15:59:60-08:00"))
	fmt.Println(strict.ParseTime("2027-03-01T18:00+02"))
	_, err := strict.ParseTime("2027-03-01T24:00:00Z")
	fmt.Printf("%.25s\n", err)
	// Output:
	// 2017-01-01 00:00:00 +0000 UTC <nil>
	// 2027-03-01 16:00:00 +0000 UTC <nil>
	// must be a valid date-time
}

func ExampleIsURL() {
	fmt.Println(strict.IsURL("https://example.com/x"), strict.IsURL("https://ada:secret@example.com/x"))
	// Output: true false
}

func ExampleIsZone() {
	fmt.Println(strict.IsZone("Europe/London"), strict.IsZone("europe/london"), strict.IsZone("UTC"))
	// Output: true false true
}
