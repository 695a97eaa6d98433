//! Line plots with confidence intervals, as SVG. The names of the lines stand beside the figure,
//! so that they hide no line.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use std::error::Error;

/// A figure.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What stands above it.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// The quantity along an axis. A logarithmic axis of bytes has powers of two, with their units.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The name, with the unit; that of an axis of bytes begins with `bytes`.
    pub name: String,
    /// Whether the scale is logarithmic; otherwise it begins at zero.
    pub is_log: bool,
}

/// A line through the points; if there are many, the line alone.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points from left to right.
    pub points: Vec<Point>,
}

/// A median and its interval: of confidence, 95 %, or all that was measured.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Where it is along the horizontal axis.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// The least value of the interval.
    pub low: f64,
    /// The greatest value of the interval.
    pub high: f64,
}

impl Plot {
    /// The figure as the text of an SVG file.
    ///
    /// # Errors
    ///
    /// An error of the plotting library.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        {
            let letters = self.series.iter().map(|series| series.name.chars().count()).max();
            let names = NAME_AT + LETTER * letters.unwrap_or(0) as u32;
            let whole = SVGBackend::with_string(&mut text, (SIZE.0 + names, SIZE.1));
            let whole = whole.into_drawing_area();
            whole.fill(&WHITE)?;
            let (area, beside) = whole.split_horizontally(SIZE.0);
            self.draw_names(&beside)?;
            self.draw_chart(ChartBuilder::on(&area).caption(&self.title, (FONT, 20)))?;
            whole.present()?;
        }
        Ok(text)
    }

    /// The axes and lines alone, without title and names, in a size that a narrow page has
    /// room for.
    pub fn svg_of_lines(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, NARROW).into_drawing_area();
            area.fill(&WHITE)?;
            self.draw_chart(&mut ChartBuilder::on(&area))?;
            area.present()?;
        }
        Ok(text)
    }

    /// The colour of a series in CSS.
    pub fn css_colour(index: usize) -> String {
        let RGBColor(red, green, blue) = colour_of(index);
        format!("rgb({red} {green} {blue})")
    }

    fn draw_chart(
        &self,
        builder: &mut ChartBuilder<'_, '_, SVGBackend<'_>>,
    ) -> Result<(), Box<dyn Error>> {
        let x = bounds_of(&self.x, self.bounds(|point| (point.x, point.x)));
        let y = bounds_of(&self.y, self.bounds(|point| (point.low, point.high)));
        // Half of the last label is on the right of the axis.
        builder.margin(12).margin_right(32).x_label_area_size(44).y_label_area_size(64);
        let x_log = (x.0..x.1).log_scale().base(self.x.base());
        let y_log = (y.0..y.1).log_scale().base(self.y.base());
        match (self.x.is_log, self.y.is_log) {
            (true, true) => self.draw(builder.build_cartesian_2d(x_log, y_log)?),
            (true, false) => self.draw(builder.build_cartesian_2d(x_log, y.0..y.1)?),
            (false, true) => self.draw(builder.build_cartesian_2d(x.0..x.1, y_log)?),
            (false, false) => self.draw(builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?),
        }
    }

    /// The least and the greatest value, with a margin.
    fn bounds(&self, ends: impl Fn(&Point) -> (f64, f64)) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let ends = points.map(ends).fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), point| {
            (low.min(point.0.max(f64::MIN_POSITIVE)), high.max(point.1))
        });
        (ends.0 / MARGIN, ends.1 * MARGIN)
    }

    fn draw<X, Y>(
        &self,
        mut chart: ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    ) -> Result<(), Box<dyn Error>>
    where
        X: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let (x, y) = (|value: &f64| self.x.label(*value), |value: &f64| self.y.label(*value));
        chart
            .configure_mesh()
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .label_style((FONT, 13))
            .x_label_formatter(&x)
            .y_label_formatter(&y)
            .light_line_style(WHITE)
            .draw()?;
        for (index, series) in self.series.iter().enumerate() {
            let colour = colour_of(index);
            let points = series.points.iter().map(|point| (point.x, point.y));
            let is_scattered = series.points.len() > LINE_POINTS_MAX;
            if is_scattered {
                let dot = |point| Circle::new(point, 1, colour.filled());
                chart.draw_series(points.map(dot))?;
                continue;
            }
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?;
            let interval = |point: &Point| {
                ErrorBar::new_vertical(point.x, point.low, point.y, point.high, colour, 6)
            };
            chart.draw_series(series.points.iter().map(interval))?;
        }
        Ok(())
    }

    fn draw_names(
        &self,
        beside: &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), Box<dyn Error>> {
        for (index, series) in self.series.iter().enumerate() {
            let y = 48 + 20 * index as i32;
            let line = [(0, y), (NAME_AT as i32 - 12, y)];
            beside.draw(&PathElement::new(line, colour_of(index).stroke_width(3)))?;
            beside.draw(&Text::new(
                series.name.as_str(),
                (NAME_AT as i32 - 6, y - 7),
                (FONT, 13),
            ))?;
        }
        Ok(())
    }
}

impl Axis {
    fn is_bytes(&self) -> bool {
        self.name.starts_with("bytes")
    }

    fn base(&self) -> f64 {
        if self.is_bytes() { 2.0 } else { 10.0 }
    }

    fn label(&self, value: f64) -> String {
        let units = [(1_u64 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB")];
        let unit = units.into_iter().find(|(unit, _)| self.is_bytes() && value >= *unit as f64);
        let (unit, name) = unit.unwrap_or((1, ""));
        // Three tenths are not quite 0.3 as a sum of binary fractions.
        let rounded = format!("{:.9e}", value / unit as f64).parse();
        format!("{}{name}", rounded.unwrap_or(value))
    }
}

/// Colours that are dark enough for a thin line.
fn colour_of(index: usize) -> RGBColor {
    const COLOURS: [(u8, u8, u8); 10] = [
        (0, 114, 178),
        (213, 94, 0),
        (0, 158, 115),
        (148, 50, 140),
        (0, 0, 0),
        (200, 140, 0),
        (70, 160, 220),
        (140, 86, 75),
        (110, 110, 110),
        (120, 130, 20),
    ];
    let (red, green, blue) = COLOURS[index % COLOURS.len()];
    RGBColor(red, green, blue)
}

/// The range of an axis: from zero, unless the axis is logarithmic.
fn bounds_of(axis: &Axis, (low, high): (f64, f64)) -> (f64, f64) {
    if axis.is_log { (low, high) } else { (0.0, high) }
}

/// A series of more points has no dots.
const LINE_POINTS_MAX: usize = 100;
/// Without the names.
const SIZE: (u32, u32) = (720, 480);
const NARROW: (u32, u32) = (420, 300);
/// Where names begin, behind a piece of their lines, and about how wide a letter is.
const NAME_AT: u32 = 40;
const LETTER: u32 = 8;
const FONT: &str = "sans-serif";
const MARGIN: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(is_log: [bool; 2], count: u32) -> Plot {
        let point = |x| Point { x, y: x * 2.0, low: x, high: x * 3.0 };
        Plot {
            title: "Latency".to_owned(),
            x: Axis { name: "bytes".to_owned(), is_log: is_log[0] },
            y: Axis { name: "microseconds".to_owned(), is_log: is_log[1] },
            series: vec![Series {
                name: "4 threads".to_owned(),
                points: (1..=count).map(f64::from).map(point).collect(),
            }],
        }
    }

    #[test]
    fn a_figure_has_its_title_its_axes_and_its_series() {
        for is_log in [[true, false], [true, true], [false, true], [false, false]] {
            let svg = plot(is_log, 3).svg().unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            for word in ["Latency", "bytes", "microseconds", "4 threads"] {
                assert!(svg.contains(word), "{word}");
            }
        }
    }

    #[test]
    fn labels_are_short() {
        let of = |name: &str, value| Axis { name: name.to_owned(), is_log: true }.label(value);
        assert_eq!(of("microseconds", 0.1 + 0.2), "0.3");
        assert_eq!(of("bytes", 3e6), "2.861022949 MiB");
        assert_eq!(of("threads", 16.0), "16");
    }

    #[test]
    fn bytes_have_units() {
        let svg = plot([true, false], 5000).svg().unwrap();
        assert!(svg.contains("KiB") && !svg.contains("1024"), "{svg}");
        let axis = Axis { name: "bytes of a page".to_owned(), is_log: true };
        assert_eq!(
            [64.0, 2048.0, 4194304.0].map(|value| axis.label(value)),
            ["64", "2 KiB", "4 MiB"]
        );
        let axis = Axis { name: "nanoseconds".to_owned(), is_log: true };
        assert_eq!(axis.label(2e6), "2000000");
    }

    #[test]
    fn many_points_are_not_joined() {
        let lines = |count| plot([false; 2], count).svg().unwrap().matches("<polyline").count();
        assert!(lines(3) > lines(200), "{} and {} lines", lines(3), lines(200));
    }
}
